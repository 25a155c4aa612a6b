"""From features, pooled and fixed, to the space that images and texts share."""

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor, nn

HeadKind = Literal["none", "matrix", "linear", "mlp", "residual"]

_TURN_SEED = 0
_FLAT = 1e-6
"""A standard deviation below which a dimension says nothing and keeps its scale."""


class RawHead(nn.Module):
    """Nothing is learnt: features pass through, or are turned into E dimensions. (B, D) -> (B, E).

    The turn is a matrix with orthonormal rows or columns, the same for every training. It keeps cosines, exactly where
    E >= D, among features of the same width; features of different widths, which are of different spaces to begin
    with, are at chance by construction.
    """

    def __init__(self, features: int, embedding_dim: int) -> None:
        super().__init__()
        self.turn: Tensor | None
        if features == embedding_dim:
            self.turn = None
        else:
            generator = torch.Generator().manual_seed(_TURN_SEED)
            turn = nn.init.orthogonal_(torch.empty(features, embedding_dim), generator=generator)
            self.register_buffer("turn", turn)

    def forward(self, features: Tensor) -> Tensor:
        return features if self.turn is None else features @ self.turn


class LinearHead(nn.Module):
    """One linear layer, as ViTCap-R has it; without a bias the matrix M of DeViSE. (B, D) -> (B, E)."""

    def __init__(self, features: int, embedding_dim: int, dropout: float, bias: bool = True) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(features, embedding_dim, bias)

    def forward(self, features: Tensor) -> Tensor:
        return self.project(self.dropout(features))  # type: ignore[no-any-return]


class PerceptronHead(nn.Module):
    """Linear, GELU, linear: the improved head of the BLIP-2 projection paper. (B, D) -> (B, E)."""

    def __init__(self, features: int, embedding_dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.widen = nn.Linear(features, hidden_dim)
        self.narrow = nn.Linear(hidden_dim, embedding_dim)

    def forward(self, features: Tensor) -> Tensor:
        hidden = nn.functional.gelu(self.widen(self.dropout(features)))
        return self.narrow(self.dropout(hidden))  # type: ignore[no-any-return]


class ResidualBlock(nn.Module):
    """Residual block: layer norm, linear, GELU, dropout, linear, added to the input. (B, E) -> (B, E)."""

    def __init__(self, width: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, hidden_dim)
        self.dropout = nn.Dropout(dropout)
        self.narrow = nn.Linear(hidden_dim, width)

    def forward(self, vectors: Tensor) -> Tensor:
        hidden = self.dropout(nn.functional.gelu(self.widen(self.norm(vectors))))
        return vectors + self.narrow(hidden)  # type: ignore[no-any-return]


class ResidualHead(nn.Module):
    """Layer norm, a linear layer, and a two-layer perceptron beside it; then further blocks. (B, D) -> (B, E).

    The normalisation makes one learning rate and one dropout fit features of any scale.

    Args:
        depth: perceptrons in all; those after the first are :class:`ResidualBlock` of width E.
    """

    def __init__(self, features: int, embedding_dim: int, hidden_dim: int, dropout: float, depth: int = 1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(features, embedding_dim)
        self.widen = nn.Linear(features, hidden_dim)
        self.narrow = nn.Linear(hidden_dim, embedding_dim)
        self.blocks = nn.ModuleList(ResidualBlock(embedding_dim, hidden_dim, dropout) for _ in range(depth - 1))

    def forward(self, features: Tensor) -> Tensor:
        features = self.dropout(self.norm(features))
        hidden = self.dropout(nn.functional.gelu(self.widen(features)))
        vectors = self.project(features) + self.narrow(hidden)
        for block in self.blocks:
            vectors = block(vectors)
        return vectors  # type: ignore[no-any-return]


class Standardise(nn.Module):
    """Every dimension less its mean, divided by its standard deviation, both of the training rows. (B, D) -> (B, D).

    They are kept with the weights: what was subtracted in training is subtracted ever after.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))

    @torch.no_grad()
    def measure(self, blocks: Iterable[Tensor]) -> None:
        """Take the statistics of rows that come in blocks, (n, D) each, so that they need not all be in memory.

        A dimension that is the same everywhere keeps its scale. The blocks' moments are joined as Chan et al. 1979 do.
        """
        count = 0
        mean, squares = torch.zeros(2, len(self.mean), dtype=torch.float64)
        for block in blocks:
            rows = block.double()
            change = rows.mean(0) - mean
            squares += (rows - rows.mean(0)).square().sum(0) + change.square() * count * len(rows) / (count + len(rows))
            count += len(rows)
            mean += change * len(rows) / count
        deviation = (squares / count).sqrt()
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(deviation > _FLAT, deviation, 1.0))

    def forward(self, features: Tensor) -> Tensor:
        return (features - self.mean) / self.scale


def build_head(
    kind: HeadKind, features: int, embedding_dim: int, hidden_dim: int, dropout: float, depth: int = 1
) -> nn.Module:
    """``hidden_dim`` is the perceptrons' width, of ``mlp`` and ``residual``; ``depth`` is for ``residual`` alone."""
    if kind == "none":
        return RawHead(features, embedding_dim)
    if kind in ("matrix", "linear"):
        return LinearHead(features, embedding_dim, dropout, bias=kind == "linear")
    if kind == "mlp":
        return PerceptronHead(features, embedding_dim, hidden_dim, dropout)
    return ResidualHead(features, embedding_dim, hidden_dim, dropout, depth)
