"""The retrieval rank of the positives of every query.

A score is the dot product of two embeddings, computed in float64 and rounded once to float32. A product in float32
depends in its last bits on the shape of its blocks, so that copies of one embedding would not tie; in float64 these
bits vanish with the rounding. The ranks therefore do not depend on the blocks, the threads or the machine. The matrix
product runs in float32, and float64 decides where a score is as close to that of a positive as float32 may err.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitcapr.errors import UserError
from vitcapr.formats.scores import Ranks

Float32s = npt.NDArray[np.float32]
Rows = npt.NDArray[np.integer]
Counts = npt.NDArray[np.int64]

_ROWS, _COLUMNS = 1024, 1024
"""Scored at a time: four megabytes. Both are below 2^16, so that a count within a block fits in 16 bits."""


def negatives_before(
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    left_image: Rows,
    right_image: Rows,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[Counts, Counts]:
    """Count, for each positive of each row of ``left`` and of ``right``, the negatives that score as high.

    So ties count against us. The rows of the other side that have the same image are the positives of a row.

    Args:
        left: (N, E), finite; right: (M, E), finite.
        left_image: (N,), right_image: (M,): the image of each.
        advance: called after each block with its number of scores; N x M in all.

    Returns:
        (N, R) and (M, S), R and S the greatest number of positives of a row; its best positive first, whose number is
        exact. A number of R (S) or more at a later place is only known to be so large. What stands beyond the
        positives of a row has no meaning.
    """
    sides = np.asarray(left, np.float32), np.asarray(right, np.float32)
    pairs = _positives(left_image, right_image)
    own = _exact_scores(*sides, *pairs)
    limits = [_best_first(own, rows, len(side)) for rows, side in zip(pairs, sides, strict=True)]
    counts = [np.zeros(each.shape, np.int64) for each in limits]
    error = _largest_error(*sides)
    for first in range(0, len(sides[0]), _ROWS):
        for start in range(0, len(sides[1]), _COLUMNS):
            block = slice(first, first + _ROWS), slice(start, start + _COLUMNS)
            parts = sides[0][block[0]], sides[1][block[1]]
            scores = parts[0] @ parts[1].T
            of_rows = slice(*np.searchsorted(pairs[0], [first, first + _ROWS]))
            row, column = pairs[0][of_rows] - first, pairs[1][of_rows] - start
            inside = (column >= 0) & (column < _COLUMNS)
            scores[row[inside], column[inside]] = -np.inf
            for axis, (part, limit, count) in enumerate(zip(block, limits, counts, strict=True)):
                _add_block(count[part], scores, parts, limit[part], axis, error)
            advance(scores.size)
    return counts[0], counts[1]


def _positives(left_image: Rows, right_image: Rows) -> tuple[Counts, Counts]:
    """Return the row on the left and on the right of every pair of one image, in the order of the rows on the left."""
    order = np.argsort(right_image, kind="stable")
    first, last = (np.searchsorted(right_image[order], left_image, side) for side in ("left", "right"))
    left = np.repeat(np.arange(len(left_image)), last - first)
    return left, order[first[left] + _places(left)]


def _places(rows: Counts) -> Counts:
    """Return the place of each number among equal ones, of numbers in ascending order."""
    return np.arange(len(rows)) - np.searchsorted(rows, rows)


def _exact_scores(left: Float32s, right: Float32s, rows: Counts, columns: Counts) -> Float32s:
    """(P,): the scores of pairs of a row on the left and one on the right."""
    if len(rows) > len(left) * len(right) // 64:
        scores = (left.astype(np.float64) @ right.T.astype(np.float64)).astype(np.float32)
        return scores[rows, columns]
    parts = [
        np.einsum(
            "pe,pe->p", left[rows[start : start + 2**14]], right[columns[start : start + 2**14]], dtype=np.float64
        )
        for start in range(0, len(rows), 2**14)
    ]
    return np.concatenate([*parts, np.empty(0)]).astype(np.float32)


def _best_first(own: Float32s, rows: Counts, number: int) -> Float32s:
    """Return (number, R): the scores of the pairs of each row in descending order, then minus infinity."""
    scores = np.full((number, np.bincount(rows).max(initial=1)), -np.inf, np.float32)
    order = np.argsort(rows, kind="stable")
    scores[rows[order], _places(rows[order])] = own[order]
    return -np.sort(-scores, axis=1)


def _largest_error(left: Float32s, right: Float32s) -> np.float32:
    """Return the largest difference between a score and the product in float32.

    It is n u ||x|| ||y||, and a few roundings more.

    Source: Higham, Accuracy and Stability of Numerical Algorithms (2002), section 3.1.

    Raises:
        UserError: a product may not fit into float32.
    """
    squares = [np.einsum("re,re->r", side, side, dtype=np.float64).max(initial=0) for side in (left, right)]
    limits = np.finfo(np.float32)
    if squares[0] * squares[1] > float(limits.max) ** 2:
        raise UserError("the embeddings are so long that their scores overflow float32", remedy="normalise them")
    return np.float32((left.shape[1] + 8) * (limits.eps / 2 * np.sqrt(squares[0] * squares[1]) + limits.tiny))


def _add_block(
    counts: Counts,
    scores: Float32s,
    parts: tuple[Float32s, Float32s],
    limits: Float32s,
    axis: int,
    error: np.float32,
) -> None:
    """Count the scores of each row (axis 0) or column (axis 1) of a block that reach its limits.

    Args:
        counts: (rows or columns, R), to be added to.
        scores: of the block, in float32; parts: what it is the product of.
        limits: (rows or columns, R), in descending order.
    """
    lines, some = np.arange(len(limits)), scores
    for place, (count, limit) in enumerate(zip(counts.T, limits.T, strict=True)):
        if place:
            lines = np.flatnonzero(count < counts.shape[1])
            some = np.take(scores, lines, axis)
        bound = np.expand_dims(limit[lines], 1 - axis)
        reach = some >= bound + error
        unsure = np.flatnonzero(reach != (some >= bound - error))
        if len(unsure):
            pairs = np.divmod(unsure, some.shape[1])
            line = lines[pairs[axis]]
            exact = _exact_scores(*parts, *((line, pairs[1]) if axis == 0 else (pairs[0], line)))
            reach[pairs] = exact >= limit[line]
        count[lines] += reach.sum(axis=1 - axis, dtype=np.uint16)


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
        """Group captions by their images.

        Raises:
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
        advance: called after each block with its number of scores; N x M in all.

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
    i2t, t2i = negatives_before(left, right, np.arange(len(left)), owners.caption_image, advance)
    return Ranks(
        i2t=(i2t[:, 0] + 1).astype(np.int32),
        t2i=(t2i[:, 0] + 1).astype(np.int32),
        i2t_precision=average_precision(i2t, owners.captions_each),
    )


def finite(embeddings: npt.ArrayLike, what: str) -> Float32s:
    """Return the embeddings in float32.

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
