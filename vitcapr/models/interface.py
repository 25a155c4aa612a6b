"""The interface between a captioner and the decoders, and the captioners by the names of their architectures."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from vitcapr.loader import beside_part, load_part

if TYPE_CHECKING:
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.training.captioner_task import TrainingImages

Memory = dict[str, Tensor]
"""The encoded images; every tensor is (B, ...)."""

State = dict[str, Tensor]
"""The states of the hypotheses; every tensor is (B, K, ...)."""


class Step(NamedTuple):
    """The next word of every hypothesis."""

    logits: Tensor
    """(B, K, V) float32."""
    state: State
    attention: Tensor | None
    """(B, K, P) float32; rows sum to 1. None if the model has no attention."""


class Captioner(nn.Module, ABC):
    """A captioner: trained on whole captions, it decodes one word at a time, for B images with K hypotheses each."""

    arrays: tuple[str, ...]
    """The arrays of the store that it reads."""
    attends: bool
    """Whether :meth:`step` gives the attention; the configuration says the same, without torch."""

    @property
    @abstractmethod
    def embedding(self) -> nn.Embedding:
        """Embedding of the words: (V, E)."""

    def begin(self, images: "TrainingImages") -> None:
        """Read the training images once, before the first step; by default nothing is read."""

    @abstractmethod
    def encode(self, features: dict[str, Tensor]) -> Memory:
        """Encode ``patches: (B, P, D)`` and ``cls: (B, D)``, as far as the model reads them, for ``step``."""

    @abstractmethod
    def initial_state(self, memory: Memory) -> State:
        """Return the state before the start token, with K = 1."""

    @abstractmethod
    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        """Read ``tokens: (B, K)`` int64 and predict the next word; K is that of ``state``.

        The first step may add to ``memory`` what the later ones need.
        """

    @abstractmethod
    def forward(self, memory: Memory, tokens: Tensor, mask: Tensor, image_index: Tensor) -> Tensor:
        """Predict the next word at every real position, teacher-forced, all time steps at once.

        Args:
            memory: of B images, from :meth:`encode`.
            tokens: (M, T) int64, the captions' words from the start token on.
            mask: (M, T) bool, the real words: the first ones of each row. In host memory, so that a GPU is not asked
                how many there are.
            image_index: (M,) int64, the image of each caption, ascending; where the mask is.

        Returns:
            (mask.sum(), V) float32 logits in the row-major order of ``mask``.
        """


class Pretrained(Protocol):
    """A pretrained network that a captioner is made of.

    Attributes:
        card: its entry in the card of the captioner: name, revision, digest.
    """

    card: dict[str, Any]

    def open(self, words: "Vocabulary", dtype: torch.dtype) -> Any: ...


def find_pretrained(kind: str, settings: Mapping[str, Any], card: Mapping[str, Any] | None = None) -> Pretrained | None:
    """Find the network that a captioner is made of, by ``find_pretrained`` beside its part; None: it needs none.

    Args:
        kind: name of the architecture.
        settings: of the captioner.
        card: the entry in the card of a trained captioner, whose network must be the same.

    Raises:
        UserError: it is not found, or is another one.
    """
    find = beside_part("CAPTIONER", kind, "find_pretrained")
    found: Pretrained | None = None if find is None else find(settings, card)
    return found


def build_captioner(architecture: dict[str, Any], **network: Any) -> Captioner:
    """Return the untrained captioner that a card's ``architecture`` describes: ``kind`` and the arguments of its class.

    Args:
        network: the ``network`` of a captioner that is made of a pretrained one.

    Raises:
        UserError: there is no such architecture, or it is of a plugin that is not here.
    """
    arguments = dict(architecture)
    captioner: Captioner = load_part("CAPTIONER", arguments.pop("kind"))(**arguments, **network)
    return captioner
