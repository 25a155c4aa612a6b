"""The files of retrieval: the embeddings of a split, and the ranks of its true matches."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vitcapr.arrays import read_arrays, write_arrays
from vitcapr.data.manifest import Manifest
from vitcapr.errors import UserError
from vitcapr.metrics.bootstrap import Comparison, Measure, compare
from vitcapr.metrics.ranks import Ranks, Truth
from vitcapr.metrics.retrieval import measures

Rows = npt.NDArray[np.int32]


class Embeddings(NamedTuple):
    """``embeddings.npz``.

    Attributes:
        images: (N, E) float32; captions: (M, E) float32.
        image_row: (N,) rows of images.parquet; caption_row: (M,) rows of captions.parquet.
        caption_image: (M,) the place among ``images`` of each caption's image.
    """

    images: npt.NDArray[np.float32]
    captions: npt.NDArray[np.float32]
    image_row: Rows
    caption_row: Rows
    caption_image: Rows


@dataclass(frozen=True)
class RankFile:
    """``ranks.npz``: ranks, of which images and captions, and the average precision of each image."""

    ranks: Ranks
    image_row: Rows
    caption_row: Rows
    caption_image: Rows

    def write(self, path: Path) -> None:
        rows = {name: getattr(self, name) for name in ("image_row", "caption_row", "caption_image")}
        write_arrays(path, self.ranks._asdict() | rows)

    @classmethod
    def read(cls, path: Path) -> "RankFile":
        """Raises:
        UserError: the file is missing or holds no ranks.
        """
        rows = ("image_row", "caption_row", "caption_image")
        content = read_arrays(path, (*Ranks._fields, *rows), "a table of ranks", "score the retriever")
        return cls(Ranks(*(content[name] for name in Ranks._fields)), *(content[name] for name in rows))

    def measures(self) -> dict[str, Measure]:
        return measures(self.ranks, Truth.of(self.caption_image, len(self.image_row)))


def compare_files(a: Path, b: Path, metric: str, samples: int, seed: int) -> Comparison:
    """Retriever A against retriever B in a metric such as ``t2i_recall_1``, on the same images and captions.

    Raises:
        UserError: the files are of different pools.
    """
    first, second = RankFile.read(a), RankFile.read(b)
    for name in ("image_row", "caption_row"):
        if not np.array_equal(getattr(first, name), getattr(second, name)):
            raise UserError(f"the ranks are of other images or captions than those of {a}", where=b)
    return compare(first.measures()[metric], second.measures()[metric], samples, seed)


def read_embeddings(path: Path) -> Embeddings:
    """Raises:
    UserError: the file is missing, holds no embeddings, or its arrays do not fit.
    """
    remedy = "embed the split"
    found = Embeddings(**read_arrays(path, Embeddings._fields, "the embeddings of a split", remedy))
    shapes = [array.shape for array in found]
    (images, captions), (n, m, k) = shapes[:2], (len(array) for array in found[2:])
    if (
        len(images) != 2
        or len(captions) != 2
        or images[1] != captions[1]
        or (n, m, k) != (images[0], *[captions[0]] * 2)
    ):
        raise UserError(f"the shapes of the embeddings do not fit: {shapes}", where=path, remedy=f"{remedy} again")
    return found


def check_pool(found: Embeddings, data: Manifest, split: str, where: Path) -> list[str]:
    """The pool is the split: all its captions in the languages that were embedded, and all images that have one.

    Returns:
        Those languages.

    Raises:
        UserError: an image or caption of the split is missing, or one of another split is there.
    """
    remedy = "embed the split again"
    table = data.captions_of(split)
    languages = sorted(table["language"][table["caption_row"].isin(found.caption_row)].unique())
    table = table[table["language"].isin(languages)]
    rows = np.unique(table["image_row"])
    if not np.array_equal(found.image_row, rows):
        what = f"{len(found.image_row)} images were embedded, not the {len(rows)} of the split '{split}' in their order"
        raise UserError(what, where=where, remedy=remedy)
    if not np.array_equal(found.caption_row, table["caption_row"]):
        what = f"{len(found.caption_row)} captions were embedded, not the {len(table)} of the split '{split}' in order"
        raise UserError(what, where=where, remedy=remedy)
    if not np.array_equal(found.image_row[found.caption_image], table["image_row"]):
        raise UserError("captions are given to images that are not theirs", where=where, remedy=remedy)
    return languages
