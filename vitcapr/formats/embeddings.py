"""``embeddings.npz``: the images and captions of a split as points of one space."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vitcapr.errors import UserError
from vitcapr.formats.arrays import read_arrays, write_arrays
from vitcapr.formats.manifest import Manifest

Rows = npt.NDArray[np.int32]
_KINDS = {
    "images": np.float32,
    "captions": np.float32,
    "image_row": np.integer,
    "caption_row": np.integer,
    "caption_image": np.integer,
}


class Embeddings(NamedTuple):
    """N images and M captions of a split as unit vectors, so that a product is a cosine.

    Attributes:
        images: (N, E) float32.
        captions: (M, E) float32.
        image_row: (N,) int32, rows of images.parquet.
        caption_row: (M,) int32, rows of captions.parquet.
        caption_image: (M,) int32, the place among ``images`` of each caption's image; never decreasing.
    """

    images: npt.NDArray[np.float32]
    captions: npt.NDArray[np.float32]
    image_row: Rows
    caption_row: Rows
    caption_image: Rows


def write_embeddings(path: Path, embeddings: Embeddings) -> None:
    """The same embeddings give the same bytes."""
    rows = {name: np.asarray(getattr(embeddings, name), np.int32) for name in Embeddings._fields[2:]}
    write_arrays(path, {"images": embeddings.images, "captions": embeddings.captions, **rows})


def read_embeddings(path: Path) -> Embeddings:
    """Raises:
    UserError: the file is missing, holds no embeddings, or its arrays do not fit.
    """
    what, remedy = "the embeddings of a split", "run the embed stage"
    found = Embeddings(**read_arrays(path, _KINDS, what, remedy))
    try:
        _check(found)
    except ValueError as error:
        raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
    return found


def read_embeddings_of(path: Path, data: Manifest) -> Embeddings:
    """The embeddings of images and captions of ``data``.

    Raises:
        UserError: as :func:`read_embeddings`, or the embeddings are of another data set.
    """
    found = read_embeddings(path)
    owner = data.rows_of(data.captions["image_id"].tolist())
    rows = found.caption_row
    if rows.max() >= len(owner) or (owner[rows] != found.image_row[found.caption_image]).any():
        raise UserError("embeddings of another data set", where=path, remedy="embed the data set of the manifest")
    return found


def read_split_embeddings(path: Path, data: Manifest, split: str) -> Embeddings:
    """The embeddings of the images and captions of a split of ``data``.

    Raises:
        UserError: as :func:`read_embeddings_of`, or the embeddings are of another split.
    """
    found = read_embeddings_of(path, data)
    if set(data.images["split"].iloc[found.image_row]) != {split}:
        raise UserError(f"these are not embeddings of the split {split}", where=path)
    return found


def _check(found: Embeddings) -> None:
    images, captions = found.images.shape, found.captions.shape
    if len(images) != 2 or len(captions) != 2 or images[1] != captions[1]:
        raise ValueError(f"images {images} and captions {captions} are not of one space")
    if found.image_row.shape != images[:1]:
        raise ValueError(f"rows {found.image_row.shape} for {images[0]} images")
    for rows in (found.caption_row, found.caption_image):
        if rows.shape != captions[:1]:
            raise ValueError(f"rows {rows.shape} for {captions[0]} captions")
    if not images[0] or not captions[0]:
        raise ValueError(f"{images[0]} images and {captions[0]} captions")
    if found.image_row.min() < 0 or found.caption_row.min() < 0:
        raise ValueError("a row is negative")
    if found.caption_image.min() < 0 or found.caption_image.max() >= images[0]:
        raise ValueError("a caption belongs to no image")
    if (np.diff(found.caption_image) < 0).any():
        raise ValueError("the captions are not in the order of the images")
    odd = sum(int((~np.isfinite(vectors).all(axis=1)).sum()) for vectors in (found.images, found.captions))
    if odd:
        raise ValueError(f"{odd} embeddings are not finite")
