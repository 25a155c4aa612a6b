"""Layer norm, a linear layer and residual two-layer perceptrons."""

from typing import TYPE_CHECKING

from pydantic import Field

from vitcapr.config.parts import Head

if TYPE_CHECKING:
    from torch import nn


class Residual(Head):
    hidden_dim: int = Field(512, ge=1)
    """Width of the hidden layer."""
    depth: int = Field(1, ge=1)
    """Number of residual perceptrons in sequence."""

    def build(self, features: int, embedding_dim: int, dropout: float) -> "nn.Module":
        from vitcapr.models.projections import ResidualHead

        return ResidualHead(features, embedding_dim, self.hidden_dim, dropout, self.depth)


HEAD = Residual
