"""``attention.npz``: which patches of its image the captioner looked at for each word of a caption."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.formats.arrays import read_arrays, write_arrays

_WHAT, _REMEDY = "a table of attention", "run the decode stage with decoding.attention"


@dataclass(frozen=True, eq=False)
class AttentionTable:
    """Attention of the words of B captions over a grid of patches.

    Attributes:
        weights: (words of all captions, h * w); float16 in the file.
        offsets: (B + 1,) int64, where the words of each caption begin in ``weights``.
        image_row: (B,) int32, the row of each caption's image.
        grid: h, w; (2,) int64 in the file.
    """

    weights: NDArray[np.floating]
    offsets: NDArray[np.integer]
    image_row: NDArray[np.integer]
    grid: tuple[int, int]

    def __post_init__(self) -> None:
        patches = self.grid[0] * self.grid[1]
        if min(self.grid) < 1 or self.weights.ndim != 2 or self.weights.shape[1] != patches:
            raise ValueError(f"weights of shape {self.weights.shape} for {self.grid[0]} x {self.grid[1]} patches")
        if self.image_row.ndim != 1 or self.offsets.shape != (len(self.image_row) + 1,):
            raise ValueError(f"offsets of shape {self.offsets.shape} for images of shape {self.image_row.shape}")
        ends = self.offsets[0], self.offsets[-1]
        if ends != (0, len(self.weights)) or (np.diff(self.offsets) < 0).any():
            raise ValueError("the offsets do not cut the weights into captions")
        if (self.image_row < 0).any() or len(np.unique(self.image_row)) != len(self.image_row):
            raise ValueError("an image row is negative or occurs twice")
        if not np.isfinite(self.weights).all():
            raise ValueError("a weight is not finite")

    def of_row(self, row: int) -> NDArray[np.floating] | None:
        """The attention (L, h, w) of the caption of an image row; None if there is none."""
        found = np.flatnonzero(self.image_row == row)
        if not len(found):
            return None
        return self.weights[self.offsets[found[0]] : self.offsets[found[0] + 1]].reshape(-1, *self.grid)


def write_attention(path: Path, table: AttentionTable) -> None:
    """The same table gives the same bytes."""
    arrays = {
        "weights": table.weights,
        "offsets": np.asarray(table.offsets, np.int64),
        "image_row": np.asarray(table.image_row, np.int32),
        "grid": np.asarray(table.grid, np.int64),
    }
    write_arrays(path, arrays)


def read_attention(path: Path) -> AttentionTable:
    """Raises:
    UserError: the file is missing or is not a table of attention.
    """
    kinds = {"weights": np.floating, "offsets": np.integer, "image_row": np.integer, "grid": np.integer}
    arrays = read_arrays(path, kinds, _WHAT, _REMEDY)
    grid = arrays.pop("grid")
    try:
        height, width = (int(side) for side in grid)
        return AttentionTable(**arrays, grid=(height, width))
    except (ValueError, TypeError) as error:
        raise UserError(f"not {_WHAT}: {error}", where=path, remedy=f"{_REMEDY} again") from error
