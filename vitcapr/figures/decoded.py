"""What decoding leaves for the figures: captions, and the attention behind their words."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vitcapr.arrays import read_arrays
from vitcapr.errors import UserError
from vitcapr.files import read_json


@dataclass(frozen=True)
class Caption:
    """A caption as it reads, and its words."""

    text: str
    words: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class AttentionTable:
    """Attention of the words of B captions over a grid of patches.

    Attributes:
        weights: (words of all captions, h * w).
        offsets: (B + 1,), where the words of each caption begin in ``weights``.
        image_row: (B,), the row of each caption's image.
        grid: h, w.
    """

    weights: NDArray[np.floating]
    offsets: NDArray[np.integer]
    image_row: NDArray[np.integer]
    grid: tuple[int, int]

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or self.weights.shape[1] != self.grid[0] * self.grid[1]:
            raise ValueError(f"weights of shape {self.weights.shape} for {self.grid[0]} x {self.grid[1]} patches")
        if len(self.offsets) != len(self.image_row) + 1 or self.offsets[-1] != len(self.weights):
            raise ValueError("the offsets do not cut the weights into captions")

    def of_row(self, row: int) -> NDArray[np.floating] | None:
        """The attention (L, h, w) of the caption of an image row; None if there is none."""
        found = np.flatnonzero(self.image_row == row)
        if not len(found):
            return None
        return self.weights[self.offsets[found[0]] : self.offsets[found[0] + 1]].reshape(-1, *self.grid)


def read_captions(path: Path) -> dict[str, Caption]:
    """The best caption of each image id in a captions.json.

    Raises:
        UserError: the file is missing or holds something else.
    """
    content = read_json(path)
    try:
        return {
            str(entry["image_id"]): Caption(str(entry["caption"]), tuple(str(word) for word in entry["tokens"]))
            for entry in content
        }
    except (TypeError, KeyError) as error:
        raise UserError("not a file of captions", where=path, remedy="run the decode stage again") from error


def read_attention(path: Path) -> AttentionTable:
    """Raises:
    UserError: the file is missing or is not a table of attention.
    """
    what, remedy = "a table of attention", "run the decode stage with decoding.attention"
    content = read_arrays(path, ("weights", "offsets", "image_row", "grid"), what, remedy)
    try:
        height, width = (int(side) for side in content.pop("grid"))
        return AttentionTable(**content, grid=(height, width))
    except (ValueError, TypeError) as error:
        raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
