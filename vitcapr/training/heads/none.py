"""The identity, or a fixed projection if the widths differ: nothing is learned."""

from typing import TYPE_CHECKING, ClassVar

from vitcapr.config.parts import Head

if TYPE_CHECKING:
    from torch import nn


class Unlearned(Head):
    learns: ClassVar[bool] = False

    def build(self, features: int, embedding_dim: int, dropout: float) -> "nn.Module":  # noqa: ARG002
        from vitcapr.models.projections import RawHead

        return RawHead(features, embedding_dim)


HEAD = Unlearned
