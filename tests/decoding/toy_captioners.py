"""Small captioners whose next-word distribution is arbitrary but fixed."""

import torch
from torch import Tensor

from vitcapr.models.interface import Memory, State, Step

PAD, START, END, UNKNOWN = 0, 1, 2, 3


class RandomCaptioner:
    """A random recurrent network that looks at random patches; ``sharpness`` sets how peaked its choices are."""

    def __init__(
        self, vocabulary: int, patches: int = 5, width: int = 6, sharpness: float = 4.0, seed: int = 0
    ) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.embedding = torch.randn(vocabulary, width, generator=draw)
        self.recurrent = torch.randn(width, width, generator=draw)
        self.output = torch.randn(2 * width, vocabulary, generator=draw) * sharpness
        self.patches, self.width, self.seed = patches, width, seed

    def encode(self, features: dict[str, Tensor]) -> Memory:
        return {"values": features["patches"]}

    def images(self, count: int) -> Memory:
        draw = torch.Generator().manual_seed(self.seed + 1)
        return self.encode({"patches": torch.randn(count, self.patches, self.width, generator=draw)})

    def initial_state(self, memory: Memory) -> State:
        return {"hidden": memory["values"].mean(1)[:, None], "age": torch.zeros(len(memory["values"]), 1)}

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        assert state["hidden"].shape[:2] == tokens.shape
        assert memory["values"].shape[0] == tokens.shape[0]
        hidden = torch.tanh(self.embedding[tokens] + state["hidden"] @ self.recurrent)
        attention = torch.softmax(hidden @ memory["values"].mT, dim=-1)
        context = attention @ memory["values"]
        logits = torch.cat([hidden, context], dim=-1) @ self.output
        # The end becomes likelier with age, so that captions of many lengths occur.
        bias = torch.zeros(logits.shape[-1])
        bias[END] = 1.0
        logits = logits + (state["age"] - 2)[..., None] * bias
        return Step(logits, {"hidden": hidden, "age": state["age"] + 1}, attention)


class MarkovCaptioner:
    """Each word depends on the one before it only: ``logits: (V, V)``, the same for every image; does not attend."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    def images(self, count: int) -> Memory:
        return {"image": torch.zeros(count, 1)}

    def encode(self, features: dict[str, Tensor]) -> Memory:
        return {"image": features["cls"]}

    def initial_state(self, memory: Memory) -> State:
        return {"last": torch.zeros(len(memory["image"]), 1, dtype=torch.int64)}

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:  # noqa: ARG002
        return Step(self.logits[tokens], {"last": tokens}, None)
