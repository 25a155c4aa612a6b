"""What a family of alignments takes and gives."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
Map = Callable[[Float32s], Float32s]
"""From features (n, D) to points (n, E) of the shared space."""
Setting = float | int | str

F = TypeVar("F", bound=np.floating[Any])


@dataclass(frozen=True)
class Pairs:
    """Images and their captions, as the features of two frozen encoders.

    Attributes:
        images: (N, Di) float32, each image once.
        texts: (M, Dt) float32.
        caption_image: (M,) int64, the row in ``images`` of each caption's image; never decreasing, none left out.
    """

    images: Float32s
    texts: Float32s
    caption_image: npt.NDArray[np.int64]

    @property
    def image_of_text(self) -> Float32s:
        """(M, Di): the features of each caption's image."""
        return self.images[self.caption_image]


@dataclass(frozen=True)
class Alignment:
    """A fitted family. The score of an image and a text is the dot product of their points."""

    images: Map
    texts: Map


class Fitted(NamedTuple):
    """An alignment, and the settings that distinguish it from the others of its fit."""

    settings: dict[str, Setting]
    alignment: Alignment


Fit = Callable[[Pairs, Pairs, int], Iterator[Fitted]]
"""From training pairs, validation pairs and a seed to the candidates among which the validation pairs choose.

A closed form does not read the validation pairs; a trained head chooses its epoch by them.
"""


def unit(rows: npt.NDArray[F]) -> npt.NDArray[F]:
    """Rows divided by their lengths; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: npt.NDArray[F] = rows / np.where(lengths > 0, lengths, lengths.dtype.type(1))
    return scaled
