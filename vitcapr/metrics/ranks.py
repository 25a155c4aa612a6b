"""The retrieval rank of the positives of every query.

A score is the dot product of two embeddings, computed in float64 and rounded once to float32. A product in float32
depends in its last bits on the shape of its blocks, so that copies of one embedding would not tie; in float64 these
bits vanish with the rounding. The ranks therefore do not depend on the blocks, the threads or the machine.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitcapr.errors import UserError
from vitcapr.formats.scores import Ranks

Float32s = npt.NDArray[np.float32]

_SCORES = 2**22
"""In memory at a time."""


def negatives_before(
    queries: npt.ArrayLike,
    candidates: npt.ArrayLike,
    query_image: npt.NDArray[np.integer],
    candidate_image: npt.NDArray[np.integer],
    advance: Callable[[int], None] = lambda _: None,
) -> npt.NDArray[np.int64]:
    """For each positive of each query, the number of negatives that score at least as high: ties count against us.

    Args:
        queries: (Q, E), finite; candidates: (C, E), finite.
        query_image: (Q,), candidate_image: (C,): the image of each. A candidate of the query's image is a positive.
        advance: called after each block with its number of scores; Q x C in all.

    Returns:
        (Q, R), R the greatest number of positives of a query; its best positive first. What stands beyond the
        positives of a query has no meaning.
    """
    columns = np.asarray(candidates, np.float64).T
    rows = np.asarray(queries, np.float32)
    images = max(query_image.max(initial=-1), candidate_image.max(initial=-1)) + 1
    most = np.bincount(candidate_image, minlength=images)[query_image].max(initial=1)
    counts = np.zeros((len(rows), most), np.int64)
    block = max(1, _SCORES // max(1, columns.shape[1]))
    for start in range(0, len(rows), block):
        part = slice(start, start + block)
        scores = (rows[part].astype(np.float64) @ columns).astype(np.float32)
        positive = query_image[part, None] == candidate_image
        bounds = np.full((len(scores), most), -np.inf, np.float32)
        bounds[np.arange(most) < positive.sum(axis=1)[:, None]] = scores[positive]
        bounds = -np.sort(-bounds, axis=1)
        scores[positive] = -np.inf
        for place in range(most):
            counts[part, place] = np.count_nonzero(scores >= bounds[:, place, None], axis=1)
        advance(scores.size)
    return counts


@dataclass(frozen=True)
class CaptionOwners:
    """The captions of each image.

    Attributes:
        caption_image: (M,) the image of each caption, in the order of the images.
        offsets: (N + 1,) where the captions of each image begin.
    """

    caption_image: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, caption_image: npt.ArrayLike, images: int) -> "CaptionOwners":
        """Raises:
        ValueError: the captions are not in the order of the images, or of images that are not there.
        UserError: an image has no caption.
        """
        owners = np.asarray(caption_image, dtype=np.int64)
        if owners.ndim != 1 or (np.diff(owners) < 0).any():
            raise ValueError("captions are not grouped in the order of their images")
        if len(owners) and not 0 <= owners[0] <= owners[-1] < images:
            raise ValueError(f"captions of images {owners[0]} to {owners[-1]}, but there are {images}")
        offsets = np.searchsorted(owners, np.arange(images + 1))
        without = np.flatnonzero(np.diff(offsets) == 0)
        if len(without):
            raise UserError("an image has no caption", where=f"row {without[0]} of the image embeddings")
        return cls(owners, offsets)

    @property
    def captions_each(self) -> npt.NDArray[np.int64]:
        """(N,)."""
        return np.diff(self.offsets)


def rank_matches(
    images: npt.ArrayLike,
    captions: npt.ArrayLike,
    caption_image: npt.ArrayLike,
    advance: Callable[[int], None] = lambda _: None,
) -> Ranks:
    """Rank all captions for every image and all images for every caption.

    Args:
        images: (N, E) embeddings.
        captions: (M, E) embeddings, grouped in the order of the images.
        caption_image: (M,) the row in ``images`` of each caption's image.
        advance: called after each block with its number of scores; 2 x N x M in all.

    Raises:
        UserError: an embedding is not finite, or an image has no caption.
        ValueError: the shapes do not fit, or the captions are in another order.
    """
    left, right = finite(images, "image"), finite(captions, "caption")
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise ValueError(f"image embeddings of {left.shape}, caption embeddings of {right.shape}")
    owners = CaptionOwners.of(caption_image, len(left))
    if len(owners.caption_image) != len(right):
        raise ValueError(f"{len(right)} caption embeddings, but the images of {len(owners.caption_image)}")
    rows = np.arange(len(left))
    i2t = negatives_before(left, right, rows, owners.caption_image, advance)
    t2i = negatives_before(right, left, owners.caption_image, rows, advance)
    return Ranks(
        i2t=(i2t[:, 0] + 1).astype(np.int32),
        t2i=(t2i[:, 0] + 1).astype(np.int32),
        i2t_precision=average_precision(i2t, owners.captions_each),
    )


def finite(embeddings: npt.ArrayLike, what: str) -> Float32s:
    """The embeddings in float32.

    Raises:
        UserError: a row is not finite.
    """
    rows = np.asarray(embeddings, np.float32)
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=-1))
    if len(wrong):
        raise UserError(
            f"{len(wrong)} embeddings are not finite",
            where=f"row {wrong[0]} of the {what} embeddings",
            remedy="train again with a smaller learning rate, then embed the split again",
        )
    return rows


def average_precision(before: npt.NDArray[np.int64], relevant: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """(N,): the mean over the first R ranks of the precision there, where an own caption stands, else 0.

    Source: Musgrave et al., A Metric Learning Reality Check (2020), MAP@R.
    """
    place = np.arange(1, before.shape[1] + 1)
    ranks = before + place
    within = (ranks <= relevant[:, None]) & (place <= relevant[:, None])
    precision: npt.NDArray[np.float64] = np.where(within, place / ranks, 0).sum(axis=1) / relevant
    return precision
