"""A Transformer decoder over the patches (Vaswani et al. 2017), as captioning models of today have it."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from vitcapr.models.interface import Captioner, Memory, State, Step


class TransformerCaptioner(Captioner):
    """Each word attends to the words before it and to all patches.

    The embedding of the words is also the output layer (Press and Wolf 2017). Positions are sinusoids. Layer norm
    stands before each sublayer (Xiong et al. 2020). The attention of a word is that of the last layer, the mean of its
    heads.

    Args:
        vocabulary: V, number of words.
        feature_dim: D, the width of the stored patches.
        embedding_dim: E, the width of the words and of every layer; a multiple of ``heads`` and of 2.
        hidden_dim: the hidden width of the feed-forward sublayers.
        layers: L, number of layers.
        heads: A, number of attention heads.
    """

    arrays = ("patches",)
    attends = True

    def __init__(
        self,
        vocabulary: int,
        feature_dim: int,
        embedding_dim: int = 256,
        hidden_dim: int = 512,
        layers: int = 2,
        heads: int = 4,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, embedding_dim, padding_idx=0)
        nn.init.normal_(self.words.weight, std=embedding_dim**-0.5)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.dropout = nn.Dropout(dropout)
        self.patch = nn.Sequential(nn.Dropout(dropout), nn.Linear(feature_dim, embedding_dim))
        self.patch_norm = nn.LayerNorm(embedding_dim)
        stack = [_Layer(embedding_dim, hidden_dim, heads, dropout) for _ in range(layers)]
        self.layers: Sequence[_Layer] = nn.ModuleList(stack)  # type: ignore[assignment]
        self.norm = nn.LayerNorm(embedding_dim)

    @property
    def embedding(self) -> nn.Embedding:
        return self.words

    def encode(self, features: dict[str, Tensor]) -> Memory:
        """``keys`` and ``values`` of the patches for each layer: (B, L, A, P, E / A)."""
        patches = self.patch_norm(self.patch(features["patches"]))
        keys, values = zip(*(layer.patches.of_memory(patches) for layer in self.layers), strict=True)
        return {"keys": torch.stack(keys, 1), "values": torch.stack(values, 1)}

    def _read(self, tokens: Tensor, first: int) -> Tensor:
        """Words and positions, (..., T, E); ``first``: the position of the first word."""
        width = self.words.embedding_dim
        places = torch.arange(first, first + tokens.shape[-1], device=tokens.device)
        return self.dropout(self.words(tokens) * math.sqrt(width) + _sinusoids(places, width))  # type: ignore[no-any-return]

    def _predict(self, states: Tensor) -> Tensor:
        return functional.linear(self.norm(states), self.words.weight, self.bias).float()

    def forward(self, memory: Memory, tokens: Tensor, mask: Tensor, image_index: Tensor) -> Tensor:
        counts = torch.bincount(image_index, minlength=len(memory["keys"]))
        slot = torch.arange(len(tokens), device=tokens.device) - (counts.cumsum(0) - counts)[image_index]
        # The captions of an image side by side; an image with fewer captions has empty ones, which are not read.
        side_by_side = tokens.new_zeros(len(counts), int(counts.max()), tokens.shape[1])
        side_by_side[image_index, slot] = tokens
        states = self._read(side_by_side, 0)
        for number, layer in enumerate(self.layers):
            states = layer(states, memory["keys"][:, number], memory["values"][:, number])
        return self._predict(states[image_index, slot][mask])

    def initial_state(self, memory: Memory) -> State:
        """``keys`` and ``values`` of the words so far for each layer: (B, K, L, A, T, E / A)."""
        images, layers, heads, _, width = memory["keys"].shape
        none = memory["keys"].new_zeros(images, 1, layers, heads, 0, width)
        return {"keys": none, "values": none}

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        states = self._read(tokens[..., None], state["keys"].shape[-2])
        attention, keys, values = None, [], []
        for number, layer in enumerate(self.layers):
            before = state["keys"][:, :, number], state["values"][:, :, number]
            states, key, value = layer.next_word(states, *before)
            states, attention = layer.look(states, memory["keys"][:, number], memory["values"][:, number])
            keys.append(key)
            values.append(value)
        state = {"keys": torch.stack(keys, 2), "values": torch.stack(values, 2)}
        return Step(self._predict(states[:, :, 0]), state, attention)


class _Attention(nn.Module):
    """Multi-head attention with its layer norm; the caller adds the result."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.memory = nn.Linear(width, 2 * width)
        self.output = nn.Sequential(nn.Linear(width, width), nn.Dropout(dropout))

    def queries(self, states: Tensor) -> Tensor:
        """(..., T, E) -> (..., A, T, E / A)."""
        return self._by_head(self.query(self.norm(states)))

    def of_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of what is attended to: (..., T, E) -> twice (..., A, T, E / A)."""
        keys, values = self.memory(memory).chunk(2, dim=-1)
        return self._by_head(keys), self._by_head(values)

    def _by_head(self, states: Tensor) -> Tensor:
        return states.unflatten(-1, (self.heads, -1)).transpose(-2, -3)  # type: ignore[no-any-return]

    def joined(self, found: Tensor) -> Tensor:
        """(..., A, T, E / A) -> (..., T, E)."""
        return self.output(found.transpose(-2, -3).flatten(-2))  # type: ignore[no-any-return]


class _Layer(nn.Module):
    def __init__(self, width: int, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.before = _Attention(width, heads, dropout)
        self.patches = _Attention(width, heads, dropout)
        self.forward_norm = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, width), nn.Dropout(dropout)
        )

    def forward(self, states: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Whole captions. states: (B, C, T, E) of C captions an image; keys, values: of its patches."""
        read = self.before.norm(states)
        found = functional.scaled_dot_product_attention(
            self.before.queries(states), *self.before.of_memory(read), is_causal=True
        )
        states = states + self.before.joined(found)
        queries = self.patches.queries(states.flatten(1, 2))
        found = functional.scaled_dot_product_attention(queries, keys, values)
        states = states + self.patches.joined(found).view_as(states)
        return states + self.perceptron(self.forward_norm(states))  # type: ignore[no-any-return]

    def next_word(self, states: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The words before. states: (B, K, 1, E); keys, values: (B, K, A, T, E / A), which grow by the word."""
        key, value = self.before.of_memory(self.before.norm(states))
        keys, values = torch.cat([keys, key], dim=-2), torch.cat([values, value], dim=-2)
        found = functional.scaled_dot_product_attention(self.before.queries(states), keys, values)
        return states + self.before.joined(found), keys, values

    def look(self, states: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The patches and the perceptron. Also returns the attention, the mean of the heads: (B, K, P) float32."""
        queries = self.patches.queries(states[:, :, 0])
        weights = torch.softmax((queries @ keys.mT).float() * keys.shape[-1] ** -0.5, dim=-1)
        states = states + self.patches.joined(weights.to(values.dtype) @ values)[:, :, None]
        return states + self.perceptron(self.forward_norm(states)), weights.mean(1)


def _sinusoids(places: Tensor, width: int) -> Tensor:
    """Positions as Vaswani et al. 2017, section 3.5: (T, E)."""
    rates = torch.exp(torch.arange(0, width, 2, device=places.device) * (-math.log(10000.0) / width))
    angles = places[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
