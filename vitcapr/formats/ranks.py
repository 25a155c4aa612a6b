"""``ranks.npz``: the retrieval rank of the positive of each image and each caption of a split."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vitcapr.errors import UserError
from vitcapr.formats.arrays import read_arrays, write_arrays
from vitcapr.formats.embeddings import Embeddings

Rows = npt.NDArray[np.int32]
_ROWS = ("image_row", "caption_row", "caption_image")


class Ranks(NamedTuple):
    """Rank 1 is the best. Items whose score equals that of the positive rank before it.

    Attributes:
        i2t: (N,) int32, 1 + the captions of *other* images that score at least as high as the image's best caption.
        t2i: (M,) int32, 1 + the other images that score at least as high as the caption's image.
        i2t_precision: (N,) float64, average precision at R of each image, R the number of its captions.
    """

    i2t: Rows
    t2i: Rows
    i2t_precision: npt.NDArray[np.float64]


@dataclass(frozen=True)
class RankFile:
    """Ranks, and of which images and captions; the rows are those of ``embeddings.npz``."""

    ranks: Ranks
    image_row: Rows
    caption_row: Rows
    caption_image: Rows

    def write(self, path: Path) -> None:
        write_arrays(path, self.ranks._asdict() | {name: getattr(self, name) for name in _ROWS})

    @classmethod
    def read(cls, path: Path) -> "RankFile":
        """Raises:
        UserError: the file is missing, holds no ranks, or its arrays do not fit.
        """
        what, remedy = "a table of ranks", "score the retriever"
        kinds = {**dict.fromkeys(("i2t", "t2i", *_ROWS), np.integer), "i2t_precision": np.floating}
        content = read_arrays(path, kinds, what, remedy)
        found = cls(Ranks(*(content[name] for name in Ranks._fields)), *(content[name] for name in _ROWS))
        try:
            found._check()
        except ValueError as error:
            raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
        return found

    def _check(self) -> None:
        i2t, t2i, precision = self.ranks
        if i2t.ndim != 1 or not i2t.shape == precision.shape == self.image_row.shape:
            raise ValueError(f"ranks {i2t.shape} and precisions {precision.shape} of images {self.image_row.shape}")
        if t2i.ndim != 1 or not t2i.shape == self.caption_row.shape == self.caption_image.shape:
            raise ValueError(f"ranks {t2i.shape} of captions {self.caption_row.shape}")
        images, captions = len(i2t), len(t2i)
        if not images or not captions:
            raise ValueError(f"{images} images and {captions} captions")
        if i2t.min() < 1 or i2t.max() > captions or t2i.min() < 1 or t2i.max() > images:
            raise ValueError("a rank is below 1 or beyond the last")
        if not ((precision >= 0) & (precision <= 1)).all():
            raise ValueError("a precision is not between 0 and 1")
        if self.image_row.min() < 0 or self.caption_row.min() < 0:
            raise ValueError("a row is negative")
        if (
            self.caption_image.min() < 0
            or self.caption_image.max() >= images
            or (np.diff(self.caption_image) < 0).any()
        ):
            raise ValueError("the captions are not in the order of the images")


def read_ranks_of(path: Path, embeddings: Embeddings) -> Ranks:
    """The ranks of the images and captions of ``embeddings``.

    Raises:
        UserError: as :meth:`RankFile.read`, or the ranks are of other embeddings.
    """
    found = RankFile.read(path)
    for name in ("image_row", "caption_row"):
        if not np.array_equal(getattr(found, name), getattr(embeddings, name)):
            raise UserError("the ranks are of other embeddings", where=path, remedy="score these embeddings again")
    return found.ranks
