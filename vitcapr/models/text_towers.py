"""The text side of a dual encoder: words read by an LSTM, or a stored text feature, to one vector."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from vitcapr.models.dropout import Dropout
from vitcapr.models.heads import HeadKind, build_head

WordPool = Literal["last", "mean", "max"]


class WordTower(nn.Module):
    """Embedding -> LSTM -> pooled states -> linear (ViTCap-R, section III.D.3, with the last state).

    Args:
        vocabulary: V, how many words; 0 is padding.
        bidirectional: read both ways; the two states of a word stand side by side.
        pool: ``last`` takes the state after the last word (both ends if bidirectional), ``mean`` and ``max`` go over
            the real words.
    """

    reads: Literal["tokens", "features"] = "tokens"

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
        self.dropout = Dropout(dropout)
        self.lstm = nn.LSTM(word_dim, hidden_dim, batch_first=True, bidirectional=bidirectional)
        self.project = nn.Linear(hidden_dim * (2 if bidirectional else 1), embedding_dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens: (M, T) int64, padded with 0 at the end. Returns (M, E)."""
        real = tokens != 0
        lengths = real.sum(1)
        words = self.dropout(self.embedding(tokens))
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, (last, _) = self.lstm(packed)
        if self.pool == "last":
            return self.project(self.dropout(torch.cat(list(last), dim=1)))  # type: ignore[no-any-return]
        hidden, _ = pad_packed_sequence(states, batch_first=True, total_length=tokens.shape[1])
        if self.pool == "mean":
            pooled = (hidden * real[..., None]).sum(1) / lengths[:, None]
        else:
            pooled = hidden.masked_fill(~real[..., None], -torch.inf).amax(1)
        return self.project(self.dropout(pooled))  # type: ignore[no-any-return]


class FeatureTower(nn.Module):
    """A text feature computed once by a frozen language model, through a head. (M, D) -> (M, E)."""

    reads: Literal["tokens", "features"] = "features"

    def __init__(
        self,
        feature_dim: int,
        embedding_dim: int,
        head: HeadKind = "linear",
        hidden_dim: int = 512,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.head = build_head(head, feature_dim, embedding_dim, hidden_dim, dropout)

    def forward(self, features: Tensor) -> Tensor:
        return self.head(features)  # type: ignore[no-any-return]


TextTower = WordTower | FeatureTower
