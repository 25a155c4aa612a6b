"""What embedding and ranking leave for the figures: a split's images and captions in one space, and true ranks."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vitcapr.arrays import read_arrays
from vitcapr.data.manifest import Manifest
from vitcapr.errors import UserError


@dataclass(frozen=True, eq=False)
class Embedded:
    """N images and M captions of a split as unit vectors, so that a product is a cosine.

    Attributes:
        images: (N, E) float32.
        captions: (M, E) float32.
        image_row: (N,), rows of the manifest's images.
        caption_row: (M,), rows of the manifest's captions.
        caption_image: (M,), position in ``images`` of each caption's image; never decreasing.
    """

    images: NDArray[np.float32]
    captions: NDArray[np.float32]
    image_row: NDArray[np.integer]
    caption_row: NDArray[np.integer]
    caption_image: NDArray[np.integer]

    def __post_init__(self) -> None:
        if self.images.ndim != 2 or self.captions.ndim != 2 or self.images.shape[1] != self.captions.shape[1]:
            raise ValueError(f"images {self.images.shape} and captions {self.captions.shape} are not of one space")
        if self.image_row.shape != self.images.shape[:1]:
            raise ValueError(f"{len(self.image_row)} rows for {len(self.images)} images")
        of_captions = self.captions.shape[:1]
        if self.caption_row.shape != of_captions or self.caption_image.shape != of_captions:
            raise ValueError(f"{len(self.caption_row)} rows for {len(self.captions)} captions")
        if not len(self.captions) or len(self.images) < 2:
            raise ValueError("it takes two images and a caption")
        if self.caption_image.min() < 0 or self.caption_image.max() >= len(self.images):
            raise ValueError("a caption belongs to no image")
        if (np.diff(self.caption_image) < 0).any():
            raise ValueError("the captions are not in the order of the images")


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of the true match, 1 the best: ``i2t`` (N,) of each image's best caption, ``t2i`` (M,) of each caption's
    image."""

    i2t: NDArray[np.integer]
    t2i: NDArray[np.integer]


def read_embeddings(path: Path, manifest: Manifest) -> Embedded:
    """Raises:
    UserError: the file is missing, is not a split's embeddings, or is of another data set.
    """
    names = ("images", "captions", "image_row", "caption_row", "caption_image")
    arrays = read_arrays(path, names, "the embeddings of a split", "run the embed stage")
    try:
        embedded = Embedded(**arrays)
    except (ValueError, TypeError) as error:
        raise UserError(f"not the embeddings of a split: {error}", where=path, remedy="embed again") from error
    owner = manifest.rows_of(manifest.captions["image_id"].tolist())
    rows = embedded.caption_row
    if rows.max() >= len(owner) or (owner[rows] != embedded.image_row[embedded.caption_image]).any():
        raise UserError("embeddings of another data set", where=path, remedy="embed the data set of the manifest")
    return embedded


def read_ranks(path: Path, embedded: Embedded) -> Ranks:
    """The ranks of ``embedded``.

    Raises:
        UserError: the file is missing, is not a table of ranks, or is of other embeddings.
    """
    ranks = Ranks(**read_arrays(path, ("i2t", "t2i"), "a table of ranks", "score the embeddings"))
    expected = (len(embedded.images),), (len(embedded.captions),)
    if (ranks.i2t.shape, ranks.t2i.shape) != expected:
        raise UserError(
            f"ranks of {ranks.i2t.size} images and {ranks.t2i.size} captions, embeddings of {expected[0][0]} and "
            f"{expected[1][0]}",
            where=path,
            remedy="score these embeddings again",
        )
    return ranks
