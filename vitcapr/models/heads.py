"""From features, pooled and fixed, to the space that images and texts share."""

from typing import Literal

import torch
from torch import Tensor, nn

from vitcapr.models.dropout import Dropout

HeadKind = Literal["linear", "residual"]


class LinearHead(nn.Module):
    """One linear layer, as ViTCap-R has it. (B, D) -> (B, E)."""

    def __init__(self, features: int, embedding_dim: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.project = nn.Linear(features, embedding_dim)

    def forward(self, features: Tensor) -> Tensor:
        return self.project(self.dropout(features))  # type: ignore[no-any-return]


class ResidualHead(nn.Module):
    """Layer norm, a linear layer, and a two-layer perceptron beside it. (B, D) -> (B, E).

    The normalisation makes one learning rate and one dropout fit features of any scale.
    """

    def __init__(self, features: int, embedding_dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.dropout = Dropout(dropout)
        self.project = nn.Linear(features, embedding_dim)
        self.widen = nn.Linear(features, hidden_dim)
        self.narrow = nn.Linear(hidden_dim, embedding_dim)

    def forward(self, features: Tensor) -> Tensor:
        features = self.dropout(self.norm(features))
        hidden = self.dropout(torch.nn.functional.gelu(self.widen(features)))
        return self.project(features) + self.narrow(hidden)  # type: ignore[no-any-return]


def build_head(
    kind: HeadKind, features: int, embedding_dim: int, hidden_dim: int, dropout: float
) -> LinearHead | ResidualHead:
    """``hidden_dim`` is the perceptron's width; a linear head has none."""
    if kind == "linear":
        return LinearHead(features, embedding_dim, dropout)
    return ResidualHead(features, embedding_dim, hidden_dim, dropout)
