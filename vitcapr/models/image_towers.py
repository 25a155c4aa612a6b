"""The image tower of a dual encoder: from the stored features of an image to one vector."""

from typing import Literal

import torch
from torch import Tensor, nn

from vitcapr.models.heads import HeadKind, Standardise, build_head

Pool = Literal["cls", "cls_mean", "attention", "attention_mean"]


class AttentionPool(nn.Module):
    """Attention pooling of the patches with Q learned queries.

    A query q and a key matrix W_k occur only as the product W_k^T q, so each query is one learned vector. The linear
    layer of the head replaces the value matrix.
    """

    def __init__(self, feature_dim: int, queries: int) -> None:
        super().__init__()
        self.queries = nn.Linear(feature_dim, queries, bias=False)

    def forward(self, patches: Tensor, mean: bool = False) -> Tensor:
        """patches: (B, P, D). Returns (B, Q * D) float32; with ``mean``, their mean follows: (B, (Q + 1) * D)."""
        with torch.autocast(patches.device.type, enabled=False):
            patches = patches.float()
            pooled = torch.softmax(self.queries.weight @ patches.transpose(1, 2), dim=2) @ patches
        return torch.cat([pooled, patches.mean(1, keepdim=True)] if mean else [pooled], dim=1).flatten(1)


class ImageTower(nn.Module):
    """From ``cls`` (B, D) and, if needed, ``patches`` (B, P, D), in any precision, to (B, E).

    Args:
        pool: ``cls``: CLS; ``cls_mean``: CLS and the mean patch; ``attention``: CLS and attention-pooled patches;
            ``attention_mean``: CLS and both.
        queries: number of attention-pooled vectors; only for ``attention`` and ``attention_mean``.
        hidden_dim: width of the head's hidden layer; only for ``mlp``, ``gated`` and ``residual``.
        depth: number of perceptrons in the head; only for ``residual``.
        standardise: standardise each dimension with the mean and deviation of the training rows; only for ``cls``.
    """

    def __init__(
        self,
        feature_dim: int,
        embedding_dim: int,
        pool: Pool = "cls",
        queries: int = 4,
        head: HeadKind = "linear",
        hidden_dim: int = 512,
        dropout: float = 0.0,
        depth: int = 1,
        standardise: bool = False,
    ) -> None:
        super().__init__()
        self.pool: Pool = pool
        self.arrays: tuple[str, ...] = ("cls",) if pool == "cls" else ("cls", "patches")
        attends = pool in ("attention", "attention_mean")
        self.attention = AttentionPool(feature_dim, queries) if attends else None
        vectors = {"cls": 1, "cls_mean": 2, "attention": 1 + queries, "attention_mean": 2 + queries}[pool]
        self.standardise = Standardise(vectors * feature_dim) if standardise else None
        self.head = build_head(head, vectors * feature_dim, embedding_dim, hidden_dim, dropout, depth)

    def forward(self, features: dict[str, Tensor]) -> Tensor:
        pooled = features["cls"].float()
        if self.attention is not None:
            of_patches = self.attention(features["patches"], mean=self.pool == "attention_mean")
            pooled = torch.cat([pooled, of_patches], dim=1)
        elif self.pool == "cls_mean":
            pooled = torch.cat([pooled, features["patches"].mean(1, dtype=torch.float32)], dim=1)
        return self.head(pooled if self.standardise is None else self.standardise(pooled))  # type: ignore[no-any-return]
