"""A Transformer decoder over the patches (Vaswani et al. 2017), as captioning models of today have it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vitcapr.models.interface import Captioner, Memory, State, Step
from vitcapr.models.packing import WordsOfImages


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
        embedding_dim: int,
        hidden_dim: int,
        layers: int,
        heads: int,
        dropout: float,
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

    def _read(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Embed words and positions: (..., E). Vaswani et al. 2017, section 3.5.

        tokens: (...) int64; places: (...) int64, or one for all.
        """
        width = self.words.embedding_dim
        rates = torch.exp(torch.arange(0, width, 2, device=places.device) * (-math.log(10000.0) / width))
        angles = places[..., None] * rates
        positions = torch.cat([angles.sin(), angles.cos()], dim=-1)
        return self.dropout(self.words(tokens) * math.sqrt(width) + positions)  # type: ignore[no-any-return]

    def _predict(self, states: Tensor) -> Tensor:
        return nn.functional.linear(self.norm(states), self.words.weight, self.bias).float()

    def forward(self, memory: Memory, tokens: Tensor, mask: Tensor, image_index: Tensor) -> Tensor:
        words = WordsOfImages.of(mask, image_index, len(memory["keys"]), tokens.device)
        states = self._read(words.pack(tokens), words.step)
        for number, layer in enumerate(self.layers):
            states = layer(states, tokens.shape, words, memory["keys"][:, number], memory["values"][:, number])
        return self._predict(states)

    def initial_state(self, memory: Memory) -> State:
        """``keys`` and ``values`` of the words so far for each layer: (B, K, L, A, T, E / A)."""
        images, layers, heads, _, width = memory["keys"].shape
        none = memory["keys"].new_zeros(images, 1, layers, heads, 0, width)
        return {"keys": none, "values": none}

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        place = torch.full((), state["keys"].shape[-2], device=tokens.device)
        states = self._read(tokens, place)
        steps = []
        for number, layer in enumerate(self.layers):
            before = state["keys"][:, :, number], state["values"][:, :, number]
            steps.append(layer.step(states, before, (memory["keys"][:, number], memory["values"][:, number])))
            states = steps[-1].states
        grown = {
            "keys": torch.stack([each.keys for each in steps], 2),
            "values": torch.stack([each.values for each in steps], 2),
        }
        return Step(self._predict(states), grown, steps[-1].attention)


class _Attention(nn.Module):
    """Multi-head attention with its layer norm; the caller adds the result."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.memory = nn.Linear(width, 2 * width)
        self.output = nn.Sequential(nn.Linear(width, width), nn.Dropout(dropout))

    def queries(self, normed: Tensor) -> Tensor:
        """(..., T, E) -> (..., A, T, E / A)."""
        return self._by_head(self.query(normed))

    def of_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of what is attended to: (..., T, E) -> twice (..., A, T, E / A)."""
        keys, values = self.memory(memory).chunk(2, dim=-1)
        return self._by_head(keys), self._by_head(values)

    def _by_head(self, states: Tensor) -> Tensor:
        return states.unflatten(-1, (self.heads, -1)).transpose(-2, -3)  # type: ignore[no-any-return]

    def joined(self, attended: Tensor) -> Tensor:
        """(..., A, T, E / A) -> (..., T, E)."""
        return self.output(attended.transpose(-2, -3).flatten(-2))  # type: ignore[no-any-return]


class _Layer(nn.Module):
    def __init__(self, width: int, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.before = _Attention(width, heads, dropout)
        self.patches = _Attention(width, heads, dropout)
        self.forward_norm = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, width), nn.Dropout(dropout)
        )

    def forward(
        self, states: Tensor, shape: Sequence[int], words: WordsOfImages, keys: Tensor, values: Tensor
    ) -> Tensor:
        """Whole captions. states: (W, E), packed; shape: (M, T), of the captions; keys, values: of the patches."""
        padded = states.new_zeros(*shape, states.shape[-1]).index_put((words.caption, words.step), states)
        padded = self.before.norm(padded)
        later = torch.ones(shape[1], shape[1], dtype=torch.bool, device=states.device).triu(1)
        attended, _ = _attend(self.before.queries(padded), *self.before.of_memory(padded), later)
        states = states + words.pack(self.before.joined(attended))
        queries = self.patches.queries(words.side_by_side(self.patches.norm(states)))
        attended, _ = _attend(queries, keys, values)
        states = states + words.packed(self.patches.joined(attended))
        return states + self.perceptron(self.forward_norm(states))  # type: ignore[no-any-return]

    def step(self, states: Tensor, before: tuple[Tensor, Tensor], patches: tuple[Tensor, Tensor]) -> "_LayerStep":
        """Read one more word.

        states: (B, K, E); before: keys and values (B, K, A, T, E / A) of the words so far.
        """
        read = self.before.norm(states)[:, :, None]
        key, value = self.before.of_memory(read)
        keys, values = torch.cat([before[0], key], dim=-2), torch.cat([before[1], value], dim=-2)
        attended, _ = _attend(self.before.queries(read), keys, values)
        states = states + self.before.joined(attended)[:, :, 0]
        attended, weights = _attend(self.patches.queries(self.patches.norm(states)), *patches)
        states = states + self.patches.joined(attended)
        return _LayerStep(states + self.perceptron(self.forward_norm(states)), keys, values, weights.mean(1))


class _LayerStep(NamedTuple):
    states: Tensor
    keys: Tensor
    values: Tensor
    attention: Tensor
    """(B, K, P) float32, the mean of the heads."""


def _attend(queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention (Vaswani et al. 2017, equation 1), and its weights in float32.

    torch's own gives no weights, and its gradient takes half of a training step on a CPU.

    Args:
        queries: (..., A, T, D); keys, values: (..., A, P, D).
        hidden: (T, P) bool, what a query must not see.
    """
    scores = (queries @ keys.mT).float() * queries.shape[-1] ** -0.5
    weights = torch.softmax(scores if hidden is None else scores.masked_fill(hidden, -torch.inf), dim=-1)
    return weights.to(values.dtype) @ values, weights


CAPTIONER = TransformerCaptioner
