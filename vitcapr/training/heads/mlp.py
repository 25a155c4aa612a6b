"""Linear, GELU, linear: the improved head of the BLIP-2 projection paper."""

from typing import TYPE_CHECKING

from pydantic import Field

from vitcapr.config.parts import Head

if TYPE_CHECKING:
    from torch import nn


class Mlp(Head):
    hidden_dim: int = Field(512, ge=1)
    """Width of the hidden layer."""

    def build(self, features: int, embedding_dim: int, dropout: float) -> "nn.Module":
        from vitcapr.models.projections import mlp_head

        return mlp_head(features, embedding_dim, self.hidden_dim, dropout)


HEAD = Mlp
