"""A linear layer (ViTCap-R)."""

from typing import TYPE_CHECKING

from vitcapr.config.parts import Head

if TYPE_CHECKING:
    from torch import nn


class Linear(Head):
    def build(self, features: int, embedding_dim: int, dropout: float) -> "nn.Module":
        from vitcapr.models.projections import linear_head

        return linear_head(features, embedding_dim, dropout, bias=True)


HEAD = Linear
