"""The networks of heads: from pooled, fixed features to the space shared by images and texts."""

from collections import OrderedDict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

_TURN_SEED = 0
_FLAT = 1e-6
"""A dimension with a smaller standard deviation is not scaled."""


class RawHead(nn.Module):
    """A head without learned weights: the identity, or a fixed projection to E dimensions. (B, D) -> (B, E).

    The projection is a matrix with orthonormal rows or columns, the same in every training. Among features of one
    width, it keeps cosines, exactly if E >= D. Features of different widths are of different spaces, so their retrieval
    is at chance.
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


class GatedHead(nn.Module):
    """Layer norm, then a gated linear unit, then a linear layer: the alignment layer of SAIL. (B, D) -> (B, E).

    Zhang et al. 2025, Assessing and Learning Alignment of Unimodal Vision and Language Models, with the unit of
    Dauphin et al. 2017:

        G(ReLU6(F1 x) * (F2 x)),    * by element

    F1, F2 and G are linear layers with biases. Weights are drawn as in Glorot and Bengio 2010, and biases start at 0.
    The details are those of the authors' public code, where H is 8 D and there is no dropout. The number of the
    equation in the paper was not checked.

    Args:
        hidden_dim: H, the width of F1 and F2.
    """

    def __init__(self, features: int, embedding_dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.dropout = nn.Dropout(dropout)
        self.gate = nn.Linear(features, hidden_dim)
        self.widen = nn.Linear(features, hidden_dim)
        self.narrow = nn.Linear(hidden_dim, embedding_dim)
        for layer in (self.gate, self.widen, self.narrow):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, features: Tensor) -> Tensor:
        features = self.dropout(self.norm(features))
        hidden = nn.functional.relu6(self.gate(features)) * self.widen(features)
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
    """Layer norm, then the sum of a linear layer and a two-layer perceptron, then residual blocks. (B, D) -> (B, E).

    With the normalisation, one learning rate and one dropout work for features of any scale.

    Args:
        depth: number of perceptrons; those after the first are :class:`ResidualBlock` of width E.
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
    """Standardise each dimension with the mean and standard deviation of the training rows. (B, D) -> (B, D).

    Both are buffers, stored with the weights.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))

    @torch.no_grad()
    def measure(self, blocks: Iterable[Tensor]) -> None:
        """Compute the statistics from blocks of rows, (n, D) each, so that not all rows are in memory.

        A constant dimension is not scaled. The moments of blocks are combined as in Chan et al. 1979.
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


def linear_head(features: int, embedding_dim: int, dropout: float, *, bias: bool) -> nn.Module:
    """Return one linear layer, (B, D) -> (B, E), with dropout of its input."""
    layers: dict[str, nn.Module] = {"dropout": nn.Dropout(dropout)}
    return nn.Sequential(OrderedDict(layers | {"project": nn.Linear(features, embedding_dim, bias=bias)}))


def mlp_head(features: int, embedding_dim: int, hidden_dim: int, dropout: float) -> nn.Module:
    """Return linear, GELU, linear, (B, D) -> (B, E), with dropout of both inputs."""
    layers: dict[str, nn.Module] = {"dropout": nn.Dropout(dropout), "widen": nn.Linear(features, hidden_dim)}
    layers |= {"gelu": nn.GELU(), "between": nn.Dropout(dropout), "narrow": nn.Linear(hidden_dim, embedding_dim)}
    return nn.Sequential(OrderedDict(layers))
