"""The interface between a captioner and the decoders."""

from typing import NamedTuple, Protocol

from torch import Tensor

Memory = dict[str, Tensor]
"""What is known of each image; every tensor is (B, ...)."""

State = dict[str, Tensor]
"""What is known of each hypothesis; every tensor is (B, K, ...)."""


class Step(NamedTuple):
    """The next word of every hypothesis."""

    logits: Tensor
    """(B, K, V) float32."""
    state: State
    attention: Tensor | None
    """(B, K, P) float32, rows sum to one; None where the model does not attend."""


class StepwiseCaptioner(Protocol):
    """A captioner that generates one word at a time, for B images with K hypotheses each."""

    def encode(self, features: dict[str, Tensor]) -> Memory:
        """``patches: (B, P, D)`` and ``cls: (B, D)``, those the model asks for, to what ``step`` needs of them."""
        ...

    def initial_state(self, memory: Memory) -> State:
        """The state before the start token, with K = 1."""
        ...

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        """Read ``tokens: (B, K)`` int64 and predict what follows; K is that of ``state``."""
        ...
