"""A gated linear unit: the alignment layer of SAIL (Zhang et al. 2025)."""

from typing import TYPE_CHECKING

from pydantic import Field

from vitcapr.config.parts import Head

if TYPE_CHECKING:
    from torch import nn


class Gated(Head):
    hidden_dim: int = Field(512, ge=1)
    """Width of the hidden layer."""

    def build(self, features: int, embedding_dim: int, dropout: float) -> "nn.Module":
        from vitcapr.models.projections import GatedHead

        return GatedHead(features, embedding_dim, self.hidden_dim, dropout)


HEAD = Gated
