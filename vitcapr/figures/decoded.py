"""What decoding leaves for the figures: captions, and the attention behind their words."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
    try:
        with np.load(path, allow_pickle=False) as content:
            return AttentionTable(
                weights=content["weights"],
                offsets=content["offsets"],
                image_row=content["image_row"],
                grid=(int(content["grid"][0]), int(content["grid"][1])),
            )
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy="run the decode stage with decoding.attention") from error
    except (KeyError, ValueError, IndexError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(
            f"not a table of attention: {error}", where=path, remedy="run the decode stage again"
        ) from error
