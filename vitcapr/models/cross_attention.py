"""Do this image and this caption belong together? Every word of the caption looks at every patch of the image.

A dual encoder compares two vectors that were made apart. Here the words attend to the patches before anything is
summed up, which tells apart what two vectors blur; it costs one pass a pair, so that it only reorders what a dual
encoder has found (Li et al. 2021, ALBEF, section 3.2).

What depends on an image alone or on a caption alone is computed once for it, and not once for each pair.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vitcapr.models.dropout import Dropout

_WIDER = 2
"""Width of the hidden layer of a perceptron, in widths of the model."""


@dataclass(frozen=True)
class Memory:
    """What the words look at, of B images: for every layer keys and values, (B, H, S, W / H) each."""

    layers: tuple[tuple[Tensor, Tensor], ...]

    def of(self, images: slice) -> "Memory":
        """The memory of some of the images."""
        return Memory(tuple((keys[images], values[images]) for keys, values in self.layers))


class Reading(NamedTuple):
    """C captions of up to T tokens, before they have seen an image.

    Attributes:
        states: (C, T, W).
        real: (C, T) bool; False is padding.
    """

    states: Tensor
    real: Tensor


class CrossEncoder(nn.Module):
    """Word embeddings, and the stored feature of the sentence as one more token, attend over stored patches.

    Args:
        feature_dim: D, of the patches and of the CLS vector.
        text_dim: of the stored text feature; None where there is none.
        vocabulary: V; 0 is padding.
        max_length: T, the longest caption in tokens.
        grid: rows and columns of the patches.
        pool: patches of squares of so many by so many are averaged before the words look at them.
        width, heads, layers: of the attention over patches.
    """

    def __init__(
        self,
        feature_dim: int,
        text_dim: int | None,
        vocabulary: int,
        max_length: int,
        grid: tuple[int, int],
        pool: int = 2,
        width: int = 64,
        heads: int = 4,
        layers: int = 1,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.max_length, self.grid, self.pool = max_length, grid, pool
        self.look = nn.Sequential(nn.LayerNorm(feature_dim), Dropout(dropout), nn.Linear(feature_dim, width))
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.places = nn.Parameter(torch.randn(max_length, width) * 0.02)
        self.sentence = None
        if text_dim is not None:
            self.sentence = nn.Sequential(nn.LayerNorm(text_dim), Dropout(dropout), nn.Linear(text_dim, width))
        self.dropout = Dropout(dropout)
        self.read = SelfAttention(width, heads, dropout)
        self.layers = nn.ModuleList(CrossLayer(width, heads, dropout) for _ in range(layers))
        self.weigh = nn.Linear(width, 1)
        self.evidence = nn.Sequential(
            nn.LayerNorm(3 * width), nn.Linear(3 * width, width), nn.GELU(), Dropout(dropout), nn.Linear(width, 1)
        )

    @property
    def _layers(self) -> list["CrossLayer"]:
        return [layer for layer in self.layers if isinstance(layer, CrossLayer)]

    def remember(self, patches: Tensor, cls: Tensor) -> Memory:
        """patches: (B, P, D), cls: (B, D)."""
        if self.pool > 1:
            # At the lower and right edge a square may be cut; what is there is averaged.
            square = patches.transpose(1, 2).unflatten(2, self.grid)
            means = nn.functional.avg_pool2d(square, self.pool, ceil_mode=True, count_include_pad=False)
            patches = means.flatten(2).transpose(1, 2)
        seen = self.look(torch.cat([cls[:, None], patches], dim=1))
        return Memory(tuple(layer.remember(seen) for layer in self._layers))

    def understand(self, tokens: Tensor, features: Tensor | None) -> Reading:
        """tokens: (C, T) int64, padded with 0; features: (C, text_dim), where the model reads them."""
        states = self.dropout(self.words(tokens) + self.places[: tokens.shape[1]])
        real = tokens != 0
        if self.sentence is not None:
            states = torch.cat([self.sentence(features)[:, None], states], dim=1)
            real = torch.cat([real.new_ones(len(real), 1), real], dim=1)
        return Reading(self.read(states, real), real)

    def match(self, memory: Memory, states: Tensor, real: Tensor) -> Tensor:
        """The logits that captions belong to an image: C captions of its own for each of B images.

        Args:
            states: (B, C, T, W); real: (B, C, T) bool.

        Returns:
            (B, C) float32: the mean of the words' evidence, each weighed by what the caption says of it.
        """
        images, captions, length, width = states.shape
        found = states.reshape(images, captions * length, width)
        for layer, (keys, values) in zip(self._layers, memory.layers, strict=True):
            found = layer(found, keys, values)
        found = found.view(images, captions, length, width)
        evidence = self.evidence(torch.cat([states, found, states * found], dim=3)).squeeze(3).float()
        weights = self.weigh(states).squeeze(3).float().masked_fill(~real, -torch.inf).softmax(dim=2)
        return (weights * evidence).sum(2)  # type: ignore[no-any-return]


class SelfAttention(nn.Module):
    """The tokens of a caption look at one another, then each passes a perceptron; both beside what they were."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.inward = nn.Linear(width, 3 * width)
        self.outward = nn.Linear(width, width)
        self.perceptron = _perceptron(width, dropout)
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """states: (C, T, W); real: (C, T) bool. Returns (C, T, W)."""
        queries, keys, values = (_heads(part, self.heads) for part in self.inward(self.norm(states)).chunk(3, dim=2))
        found = nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=real[:, None, None])
        states = states + self.dropout(self.outward(_joined(found)))
        return states + self.perceptron(states)  # type: ignore[no-any-return]


class CrossLayer(nn.Module):
    """Words look at what is remembered of an image, then each passes a perceptron; both beside what they were."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.ask = nn.Linear(width, width)
        self.offer = nn.Linear(width, 2 * width)
        self.outward = nn.Linear(width, width)
        self.perceptron = _perceptron(width, dropout)
        self.dropout = Dropout(dropout)

    def remember(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """seen: (B, S, W). Returns keys and values, (B, H, S, W / H) each."""
        keys, values = self.offer(seen).chunk(2, dim=2)
        return _heads(keys, self.heads), _heads(values, self.heads)

    def forward(self, states: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """states: (B, N, W). Returns (B, N, W)."""
        queries = _heads(self.ask(self.norm(states)), self.heads)
        found = nn.functional.scaled_dot_product_attention(queries, keys, values)
        states = states + self.dropout(self.outward(_joined(found)))
        return states + self.perceptron(states)  # type: ignore[no-any-return]


def _perceptron(width: int, dropout: float) -> nn.Sequential:
    wide = _WIDER * width
    return nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, wide), nn.GELU(), Dropout(dropout), nn.Linear(wide, width)
    )


def _heads(states: Tensor, heads: int) -> Tensor:
    """(B, N, W) -> (B, H, N, W / H)."""
    return states.unflatten(2, (heads, -1)).transpose(1, 2)  # type: ignore[no-any-return]


def _joined(found: Tensor) -> Tensor:
    """(B, H, N, W / H) -> (B, N, W)."""
    return found.transpose(1, 2).flatten(2)
