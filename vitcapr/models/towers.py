"""The towers of a dual encoder: from stored features or words of an image or caption to one vector."""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vitcapr.errors import UserError
from vitcapr.loader import load_part
from vitcapr.models.packing import lstm_states
from vitcapr.models.projections import Standardise

HeadSettings = str | Mapping[str, Any]
"""The name of a head, or its settings with the name as ``kind``."""
Pool = Literal["cls", "cls_mean", "attention", "attention_mean"]
WordPool = Literal["last", "mean", "max"]
Reads = Literal["tokens", "features", "both", "own"]
"""Token ids, (M, T) int64, padded with 0; stored features, (M, D) float32; both, features first; or a form of the
tower's own."""


def build_head(settings: HeadSettings, features: int, embedding_dim: int, dropout: float) -> nn.Module:
    """Return the untrained network of a head, (B, D) -> (B, E).

    Raises:
        UserError: there is no such head, it is of an extension that is not here, or its network gives another shape.
    """
    given = {"kind": settings} if isinstance(settings, str) else settings
    head = load_part("HEAD", given["kind"]).model_validate(given)
    network: nn.Module = head.build(features, embedding_dim, dropout)
    with torch.no_grad():
        shape = tuple(network.eval()(torch.zeros(2, features)).shape)
    if shape != (2, embedding_dim):
        what = f"the head '{head.kind}' turns (2, {features}) into {shape}, not into (2, {embedding_dim})"
        raise UserError(what, remedy="correct its network")
    return network.train()


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
    """Image tower from ``cls`` (B, D) and, if needed, ``patches`` (B, P, D), in any precision, to (B, E).

    Args:
        feature_dim: D, the width of the patches; for the pool ``cls``, of CLS.
        cls_dim: the width of CLS, if it differs from that of the patches; 0 without CLS, which ``attention`` and
            ``attention_mean`` can do without.
        pool: ``cls``: CLS; ``cls_mean``: CLS and the mean patch; ``attention``: CLS and attention-pooled patches;
            ``attention_mean``: CLS and both.
        queries: number of attention-pooled vectors; only for ``attention`` and ``attention_mean``.
        head: the plain settings of the head.
        standardise: standardise each dimension with the mean and deviation of the training rows; only for ``cls``.
    """

    def __init__(
        self,
        feature_dim: int,
        embedding_dim: int,
        pool: Pool = "cls",
        queries: int = 4,
        head: HeadSettings = "linear",
        dropout: float = 0.0,
        standardise: bool = False,
        cls_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.pool: Pool = pool
        self.arrays = tuple(n for n, read in (("cls", cls_dim != 0), ("patches", pool != "cls")) if read)
        attends = pool in ("attention", "attention_mean")
        self.attention = AttentionPool(feature_dim, queries) if attends else None
        of_patches = {"cls": 0, "cls_mean": 1, "attention": queries, "attention_mean": 1 + queries}[pool]
        width = (feature_dim if cls_dim is None else cls_dim) + of_patches * feature_dim
        self.standardise = Standardise(width) if standardise else None
        self.head = build_head(head, width, embedding_dim, dropout)

    def forward(self, features: dict[str, Tensor]) -> Tensor:
        parts = [features["cls"].float()] if "cls" in self.arrays else []
        if self.attention is not None:
            parts.append(self.attention(features["patches"], mean=self.pool == "attention_mean"))
        elif self.pool == "cls_mean":
            parts.append(features["patches"].mean(1, dtype=torch.float32))
        pooled = torch.cat(parts, dim=1)
        return self.head(pooled if self.standardise is None else self.standardise(pooled))  # type: ignore[no-any-return]


class WordTower(nn.Module):
    """Embedding -> LSTM -> pooled states -> linear (ViTCap-R, section III.D.3, with the last state).

    Args:
        vocabulary: V, number of words; 0 is padding.
        bidirectional: a second LSTM reads the words backwards; the two pooled vectors are concatenated.
        pool: ``last``: the state after the last word read; ``mean`` or ``max``: over the states of the real words.
    """

    reads: Reads = "tokens"

    def __init__(
        self,
        vocabulary: int,
        embedding_dim: int,
        word_dim: int = 256,
        hidden_dim: int = 256,
        bidirectional: bool = False,
        pool: WordPool = "last",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.pool: WordPool = pool
        self.embedding = nn.Embedding(vocabulary, word_dim, padding_idx=0)
        self.dropout = nn.Dropout(dropout)
        self.forth = nn.LSTM(word_dim, hidden_dim, batch_first=True)
        self.back = nn.LSTM(word_dim, hidden_dim, batch_first=True) if bidirectional else None
        self.project = nn.Linear(hidden_dim * (2 if bidirectional else 1), embedding_dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens: (M, T) int64, padded with 0 at the end. Returns (M, E)."""
        lengths = (tokens != 0).sum(1)
        words = self.dropout(self.embedding(tokens))
        pooled = [self._pooled(lstm_states(self.forth, words), lengths)]
        if self.back is not None:
            # In reverse order; the values after the last word are not used.
            places = (lengths[:, None] - 1 - torch.arange(words.shape[1], device=words.device)).clamp(min=0)
            backwards = words.gather(1, places[..., None].expand_as(words))
            pooled.append(self._pooled(lstm_states(self.back, backwards), lengths))
        return self.project(self.dropout(torch.cat(pooled, dim=1)))  # type: ignore[no-any-return]

    def _pooled(self, states: Tensor, lengths: Tensor) -> Tensor:
        """states: (M, T, H); those after the end of a caption are not used. lengths: (M,). Returns (M, H) float32."""
        if self.pool == "last":
            return states[torch.arange(len(states), device=states.device), lengths - 1]
        padding = torch.arange(states.shape[1], device=states.device) >= lengths[:, None]
        if self.pool == "mean":
            return states.masked_fill(padding[..., None], 0).sum(1) / lengths[:, None]
        return states.masked_fill(padding[..., None], -torch.inf).amax(1)


class HeadTower(nn.Module):
    """A head on what is known of a caption: a stored text feature, the mean of learned word embeddings, or both.

    (M, D), (M, T), or both as a tuple -> (M, E). The order of the words does not count. A sentence encoder loses single
    words; with both, the mean of the word embeddings keeps them.

    Args:
        feature_dim: D; 0: no feature is read.
        vocabulary: V, number of words, of which 0 is padding; 0: no words are read.
        word_dim: W; the head reads D + W numbers.
        head, standardise: as in :class:`ImageTower`; only the feature is standardised.
        word_dropout: share of the words that training leaves out of the mean, at random (Iyyer et al. 2015, Deep
            Unordered Composition Rivals Syntactic Methods for Text Classification).
    """

    def __init__(
        self,
        embedding_dim: int,
        feature_dim: int = 0,
        vocabulary: int = 0,
        word_dim: int = 256,
        head: HeadSettings = "linear",
        dropout: float = 0.0,
        standardise: bool = False,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.reads: Reads = "features" if not vocabulary else "both" if feature_dim else "tokens"
        self.word_dropout = word_dropout
        self.standardise = Standardise(feature_dim) if standardise else None
        self.embedding = nn.Embedding(vocabulary, word_dim, padding_idx=0) if vocabulary else None
        width = feature_dim + (word_dim if vocabulary else 0)
        self.head = build_head(head, width, embedding_dim, dropout)

    def forward(self, texts: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        read = list(texts if isinstance(texts, tuple) else (texts,))
        if self.standardise is not None:
            read[0] = self.standardise(read[0])
        if self.embedding is not None:
            tokens = read[-1]
            if self.training and self.word_dropout:
                tokens = tokens.masked_fill(torch.rand(tokens.shape, device=tokens.device) < self.word_dropout, 0)
            read[-1] = nn.functional.embedding_bag(tokens, self.embedding.weight, mode="mean", padding_idx=0)
        return self.head(torch.cat(read, dim=1))  # type: ignore[no-any-return]


TextTower = WordTower | HeadTower


def build_text_tower(settings: Mapping[str, Any], embedding_dim: int) -> TextTower:
    """Return the untrained text tower that the ``text`` of an architecture describes.

    Raises:
        UserError: the tower is of an extension that is not here, or gives another shape.
    """
    given = dict(settings)
    kind = given.pop("kind")
    if kind == "words":
        return WordTower(embedding_dim=embedding_dim, **given)
    if kind in ("bag", "features", "features_and_words"):
        return HeadTower(embedding_dim=embedding_dim, **given)
    vocabulary = given.pop("vocabulary")
    tower: TextTower = load_part("TOWER", kind).model_validate({"kind": kind, **given}).build(vocabulary, embedding_dim)
    tower.reads = "tokens"
    with torch.no_grad():
        shape = tuple(tower.eval()(torch.ones(2, 3, dtype=torch.int64)).shape)
    if shape != (2, embedding_dim):
        what = f"the tower '{kind}' turns word ids (2, 3) into {shape}, not into (2, {embedding_dim})"
        raise UserError(what, remedy="correct its network")
    return tower.train()
