"""Losses of dual encoders and of captioners: parts that a phase of training names."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import SerializeAsAny

from vitcapr.config.parts import Names, Part

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from vitcapr.formats.tokens import TokenTable
    from vitcapr.formats.vocabulary import Vocabulary


@dataclass(frozen=True)
class Pairs:
    """The images and captions of a batch, of all processes, as a loss compares them.

    Attributes:
        images: (B, E) float32, of length 1 unless the loss sets ``unit_images`` to false.
        captions: (M, E) float32, of length 1.
        similarity: (B, M) float32, the dot products of both.
        owners: (M,) int64, the image of each caption.
        rows: (B,) int64, the rows of the images in the store and in the data set.
        temperature: a scalar, learned or fixed.
        bias: a learned scalar, if the loss sets ``start_bias``.
    """

    images: "Tensor"
    captions: "Tensor"
    similarity: "Tensor"
    owners: "Tensor"
    rows: "Tensor"
    temperature: "Tensor"
    bias: "Tensor | None" = None


class Loss(Part):
    """A loss of dual encoders."""

    unit_images: ClassVar[bool] = True
    """Whether images have length 1; captions always have."""
    start_bias: ClassVar[float | None] = None
    """Initial value of a learned bias; None: there is none."""
    validates: ClassVar[bool] = False
    """Whether the validation loss is this loss; by default it is InfoNCE."""

    def loss(self, pairs: Pairs) -> "Tensor":
        """Return the mean loss of a true pair, a scalar."""
        raise NotImplementedError


@dataclass(frozen=True)
class Words:
    """The words of a batch, as a loss compares them with the predictions of a captioner.

    Attributes:
        logits: (n, V) float32, of the n words to predict, caption by caption.
        targets: (n,) int64, these words; the end of a caption is one of them.
        tokens: (M, T) int64, the words that the captioner has read, the start of a caption first, padded with 0.
        mask: (M, T) bool, in host memory: the positions of ``tokens`` with a word to predict, in the order of the n.
    """

    logits: "Tensor"
    targets: "Tensor"
    tokens: "Tensor"
    mask: "Tensor"


@dataclass(frozen=True)
class TrainingCaptions:
    """The captions that a captioner is trained on.

    Attributes:
        tokens: the captions of all images, as numbers of ``vocabulary``.
        rows: the training images.
        max_length: most tokens of a caption in this phase, start and end included.
    """

    tokens: "TokenTable"
    rows: "np.ndarray"
    vocabulary: "Vocabulary"
    max_length: int


class CaptionerLoss(Part):
    """A loss of captioners: of the captions of the data, or of captions that the captioner draws."""

    rewards: ClassVar[bool] = False
    """Whether it is minus a reward of drawn captions: then the validation loss cannot select an epoch."""

    def loss(self, words: Words) -> "Tensor":
        """Return the mean loss of a word, a scalar."""
        raise NotImplementedError

    def draw(self, captions: TrainingCaptions) -> Any:  # noqa: ARG002
        """Return the loss of captions that the captioner draws, which replaces :meth:`loss`; None: there is none.

        Its method ``loss(model, features, rows)`` returns the mean loss of a drawn caption and their number.
        """
        return None


AnyLoss = Annotated[SerializeAsAny[Loss], Names("LOSS", Loss)]
"""The loss of a phase of a dual encoder; the name is enough if all its settings keep their defaults."""
AnyCaptionerLoss = Annotated[SerializeAsAny[CaptionerLoss], Names("LOSS", CaptionerLoss)]
"""The loss of a phase of a captioner."""
