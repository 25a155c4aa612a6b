"""A linear layer without bias (Frome et al. 2013, DeViSE)."""

from typing import TYPE_CHECKING

from vitcapr.config.parts import Head

if TYPE_CHECKING:
    from torch import nn


class Matrix(Head):
    def build(self, features: int, embedding_dim: int, dropout: float) -> "nn.Module":
        from vitcapr.models.projections import linear_head

        return linear_head(features, embedding_dim, dropout, bias=False)


HEAD = Matrix
