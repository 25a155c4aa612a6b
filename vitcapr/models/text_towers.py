"""The text towers of a dual encoder: from words (by an LSTM or as a bag), a stored feature, or both, to one vector."""

from typing import Literal

import torch
from torch import Tensor, nn

from vitcapr.models.heads import HeadKind, Standardise, build_head
from vitcapr.models.recurrent import lstm_states

WordPool = Literal["last", "mean", "max"]
Reads = Literal["tokens", "features", "both"]
"""Token ids, (M, T) int64, padded with 0; stored features, (M, D) float32; or both, features first."""


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
            pooled.append(self._pooled(lstm_states(self.back, _reversed(words, lengths)), lengths))
        return self.project(self.dropout(torch.cat(pooled, dim=1)))  # type: ignore[no-any-return]

    def _pooled(self, states: Tensor, lengths: Tensor) -> Tensor:
        """states: (M, T, H); those after the end of a caption are not used. lengths: (M,). Returns (M, H) float32."""
        if self.pool == "last":
            return states[torch.arange(len(states), device=states.device), lengths - 1]
        padding = torch.arange(states.shape[1], device=states.device) >= lengths[:, None]
        if self.pool == "mean":
            return states.masked_fill(padding[..., None], 0).sum(1) / lengths[:, None]
        return states.masked_fill(padding[..., None], -torch.inf).amax(1)


def _reversed(words: Tensor, lengths: Tensor) -> Tensor:
    """The words of every caption in reverse order, (M, T, D). The values after the last word are not used."""
    places = (lengths[:, None] - 1 - torch.arange(words.shape[1], device=words.device)).clamp(min=0)
    return words.gather(1, places[..., None].expand_as(words))


class FeatureTower(nn.Module):
    """A head on stored text features of a frozen language model. (M, D) -> (M, E).

    Args:
        head, hidden_dim, depth, standardise: as in :class:`vitcapr.models.image_towers.ImageTower`.
    """

    reads: Reads = "features"

    def __init__(
        self,
        feature_dim: int,
        embedding_dim: int,
        head: HeadKind = "linear",
        hidden_dim: int = 512,
        dropout: float = 0.0,
        depth: int = 1,
        standardise: bool = False,
    ) -> None:
        super().__init__()
        self.standardise = Standardise(feature_dim) if standardise else None
        self.head = build_head(head, feature_dim, embedding_dim, hidden_dim, dropout, depth)

    def forward(self, features: Tensor) -> Tensor:
        return self.head(features if self.standardise is None else self.standardise(features))  # type: ignore[no-any-return]


class BagTower(nn.Module):
    """The mean of learned word embeddings, through a head. (M, T) -> (M, E). The order of the words does not count.

    Args:
        vocabulary: V, number of words; 0 is padding.
        word_dim: W; the head reads W numbers.
        word_dropout: share of the words that training leaves out of the mean, at random (Iyyer et al. 2015, Deep
            Unordered Composition Rivals Syntactic Methods for Text Classification).
        head, hidden_dim, depth: as in :class:`FeatureTower`.
    """

    reads: Reads = "tokens"

    def __init__(
        self,
        vocabulary: int,
        embedding_dim: int,
        word_dim: int = 256,
        head: HeadKind = "linear",
        hidden_dim: int = 512,
        dropout: float = 0.0,
        depth: int = 1,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.word_dropout = word_dropout
        self.embedding = nn.Embedding(vocabulary, word_dim, padding_idx=0)
        self.head = build_head(head, word_dim, embedding_dim, hidden_dim, dropout, depth)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(_bag(tokens, self.embedding, self.word_dropout if self.training else 0.0))  # type: ignore[no-any-return]


class FeatureAndWordTower(nn.Module):
    """A head on a stored text feature and the mean of learned word embeddings. (M, D), (M, T) -> (M, E).

    A sentence encoder loses single words. The mean of the word embeddings keeps them.

    Args:
        vocabulary: V, number of words; 0 is padding.
        word_dim: W; the head reads D + W numbers.
        word_dropout: as in :class:`BagTower`.
        head, hidden_dim, depth, standardise: as in :class:`FeatureTower`; only the feature is standardised.
    """

    reads: Reads = "both"

    def __init__(
        self,
        feature_dim: int,
        vocabulary: int,
        embedding_dim: int,
        word_dim: int = 256,
        head: HeadKind = "linear",
        hidden_dim: int = 512,
        dropout: float = 0.0,
        depth: int = 1,
        standardise: bool = False,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.word_dropout = word_dropout
        self.standardise = Standardise(feature_dim) if standardise else None
        self.embedding = nn.Embedding(vocabulary, word_dim, padding_idx=0)
        self.head = build_head(head, feature_dim + word_dim, embedding_dim, hidden_dim, dropout, depth)

    def forward(self, texts: tuple[Tensor, Tensor]) -> Tensor:
        features, tokens = texts
        if self.standardise is not None:
            features = self.standardise(features)
        words = _bag(tokens, self.embedding, self.word_dropout if self.training else 0.0)
        return self.head(torch.cat([features, words], dim=1))  # type: ignore[no-any-return]


def _bag(tokens: Tensor, embedding: nn.Embedding, dropped: float) -> Tensor:
    """The mean embedding of the real words, without a random share of them: (M, T) -> (M, W)."""
    if dropped:
        tokens = tokens.masked_fill(torch.rand(tokens.shape, device=tokens.device) < dropped, 0)
    return nn.functional.embedding_bag(tokens, embedding.weight, mode="mean", padding_idx=0)


TextTower = WordTower | BagTower | FeatureTower | FeatureAndWordTower
