"""At which rank the true match stands, for every image and every caption, without the matrix of all scores.

A score is the dot product of two embeddings, rounded once to float32. A matrix product in float32 depends in its last
bits on the shape of the blocks and on the place in them, so that equal pairs would not tie. Here such a product only
sorts out the scores that are certainly above or below; the few that rounding could confuse with the true match are
computed again. The ranks therefore do not depend on the blocks, the threads or the machine.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from vitcapr.errors import UserError
from vitcapr.metrics.score_blocks import Buffer, Floats, ScoreBlock, dot_products, slack_of

Integers = npt.NDArray[np.int32]

_IMAGES_SCORED = 384
_CAPTIONS_SCORED = 6448
"""Scored at a time in each thread: 10 MB of scores, enough for a fast matrix product."""
_IMAGES_HELD = 21 * _IMAGES_SCORED
"""Images read at a time: the captions are read once for each such part."""
_CAPTIONS_HELD = 3 * _CAPTIONS_SCORED


class Matrix(Protocol):
    """Rows to read by slices: a NumPy array, a memory map, a Zarr or dask array, an array of a feature store."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: slice, /) -> Any: ...


class Ranks(NamedTuple):
    """Rank 1 is the best. Items whose score equals that of the true match stand before it.

    Attributes:
        i2t: (N,) int32, 1 + the captions of *other* images that score at least as high as the image's best caption.
        t2i: (M,) int32, 1 + the other images that score at least as high as the caption's image.
        i2t_precision: (N,) float64, average precision at R of each image, R the number of its captions.
    """

    i2t: Integers
    t2i: Integers
    i2t_precision: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """Which captions are of which image.

    Attributes:
        caption_image: (M,) the image of each caption, in the order of the images.
        offsets: (N + 1,) where the captions of each image begin.
    """

    caption_image: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, caption_image: npt.ArrayLike, images: int) -> "Truth":
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
            raise UserError("an image has no caption to be found", where=f"row {without[0]} of the image embeddings")
        return cls(owners, offsets)

    @property
    def captions_each(self) -> npt.NDArray[np.int64]:
        """(N,)."""
        return np.diff(self.offsets)


def rank_matches(
    images: Matrix,
    captions: Matrix,
    caption_image: npt.ArrayLike,
    advance: Callable[[int], None] = lambda _: None,
) -> Ranks:
    """Rank all captions for every image and all images for every caption; each score is computed once for both.

    Args:
        images: (N, E) embeddings.
        captions: (M, E) embeddings, grouped in the order of the images.
        caption_image: (M,) the row in ``images`` of each caption's image.
        advance: told after every block how many scores it had; N x M in all.

    The memory is bounded by constants times E, a block of scores a thread, and numbers for each image and caption.

    Raises:
        UserError: an embedding is not finite, or an image has no caption.
        ValueError: the shapes do not fit, or the captions are in another order.
    """
    if len(images.shape) != 2 or len(captions.shape) != 2 or images.shape[1] != captions.shape[1]:
        raise ValueError(f"image embeddings of {images.shape}, caption embeddings of {captions.shape}")
    truth = Truth.of(caption_image, images.shape[0])
    if len(truth.caption_image) != captions.shape[0]:
        raise ValueError(f"{captions.shape[0]} caption embeddings, but the images of {len(truth.caption_image)}")
    tally = _Tally(truth, _true_scores(images, captions, truth))
    buffer = Buffer(_IMAGES_SCORED, min(_CAPTIONS_SCORED, captions.shape[0]))

    def add(panel: Floats, tile: Floats, slack: np.float32, first_image: int, first_caption: int) -> int:
        tally.add(ScoreBlock.compute(panel, tile, slack, buffer), first_image, first_caption)
        return len(panel) * len(tile)

    # Each thread scores a block and counts it: BLAS's own threads would keep their cores busy while they wait.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for image_start in range(0, images.shape[0], _IMAGES_HELD):
            held = read_rows(images, image_start, image_start + _IMAGES_HELD, "image")
            for caption_start in range(0, captions.shape[0], _CAPTIONS_HELD):
                texts = read_rows(captions, caption_start, caption_start + _CAPTIONS_HELD, "caption")
                blocks = _blocks(held, texts, image_start, caption_start)
                for scores in pool.map(add, *zip(*blocks, strict=True)):
                    advance(scores)
    return tally.ranks()


class _Tally:
    """How many items stand before each true match in the blocks seen so far.

    Attributes:
        true_scores: (M,) of each caption with its own image.
        own_scores: (N, R) of each image with its own captions, the best first; inf where it has fewer.
        before_own: (N, R) captions of other images before each of those. Beyond the best own caption they are counted
            only while it could still be among the first R, which is all that the precision needs.
        before_image: (M,) other images before each caption's own.
    """

    def __init__(self, truth: Truth, true_scores: Floats) -> None:
        self.truth = truth
        self.true_scores = true_scores
        self.own_scores = np.full((len(truth.captions_each), truth.captions_each.max(initial=1)), np.inf, np.float32)
        place = np.arange(len(true_scores)) - truth.offsets[truth.caption_image]
        best_first = np.lexsort((-true_scores, truth.caption_image))
        self.own_scores[truth.caption_image, place] = true_scores[best_first]
        self.before_own = np.zeros(self.own_scores.shape, np.int64)
        self.before_image = np.zeros(len(true_scores), np.int64)
        self.lock = threading.Lock()

    def add(self, block: ScoreBlock, first_image: int, first_caption: int) -> None:
        """Count a block of all scores. Threads may side by side: what others add only lowers the limits."""
        rows = slice(first_image, first_image + len(block.images))
        columns = slice(first_caption, first_caption + len(block.captions))
        self._leave_out_own(block, rows, columns)
        own, relevant = self.own_scores[rows], self.truth.captions_each[rows]
        # Beyond this many others before it, an own caption is not among the first R.
        limits = relevant[:, None] - np.arange(1, own.shape[1] + 1) - self.before_own[rows]
        best, images_before = block.count(own[:, 0], self.true_scores[columns])
        # What is before the best own caption is before the others, too, and for most images that decides.
        captions_before = np.repeat(best[:, None], own.shape[1], axis=1)
        if own.shape[1] > 1:
            undecided = np.flatnonzero(best <= limits[:, 1])
            captions_before[undecided, 1:] = block.count_in_rows_up_to(
                undecided, own[undecided, 1:], limits[undecided, 1:]
            )
        with self.lock:
            self.before_own[rows] += captions_before
            self.before_image[columns] += images_before

    def ranks(self) -> Ranks:
        precision = average_precision(self.before_own, self.truth.captions_each)
        return Ranks((self.before_own[:, 0] + 1).astype(np.int32), (self.before_image + 1).astype(np.int32), precision)

    def _leave_out_own(self, block: ScoreBlock, rows: slice, columns: slice) -> None:
        """A true match competes with others only: not with itself, nor with the other captions of its image."""
        first = max(self.truth.offsets[rows.start], columns.start)
        last = min(self.truth.offsets[rows.stop], columns.stop)
        if first < last:
            block.leave_out(self.truth.caption_image[first:last] - rows.start, np.arange(first, last) - columns.start)


def _blocks(
    images: Floats, captions: Floats, first_image: int, first_caption: int
) -> Iterator[tuple[Floats, Floats, np.float32, int, int]]:
    """Images and captions to score at a time, the slack of their scores, and the place of the first of each."""
    slack = slack_of(images, captions)
    for column in range(0, len(captions), _CAPTIONS_SCORED):
        for row in range(0, len(images), _IMAGES_SCORED):
            panel, tile = images[row : row + _IMAGES_SCORED], captions[column : column + _CAPTIONS_SCORED]
            yield panel, tile, slack, first_image + row, first_caption + column


def read_rows(matrix: Matrix, start: int, stop: int, what: str) -> Floats:
    """Rows ``start`` to ``stop`` in float32 and in order in memory.

    Raises:
        UserError: one of them is not finite.
    """
    rows = np.ascontiguousarray(matrix[start:stop], dtype=np.float32)
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(wrong):
        raise UserError(
            f"{len(wrong)} embeddings are not finite",
            where=f"row {start + wrong[0]} of the {what} embeddings",
            remedy="train again with a smaller learning rate, then embed the split again",
        )
    return rows


def _true_scores(images: Matrix, captions: Matrix, truth: Truth) -> Floats:
    """(M,): each caption with its own image."""
    scores = np.empty(len(truth.caption_image), np.float32)
    for start in range(0, len(scores), _CAPTIONS_HELD):
        texts = read_rows(captions, start, start + _CAPTIONS_HELD, "caption")
        owners = truth.caption_image[start : start + len(texts)]
        held = read_rows(images, owners[0], owners[-1] + 1, "image")
        scores[start : start + len(texts)] = dot_products(held, texts, owners - owners[0], np.arange(len(texts)))
    return scores


def average_precision(before: npt.NDArray[np.int64], relevant: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """(N,): the mean over the first R ranks of the precision there, where an own caption stands, else 0.

    Source: Musgrave et al., A Metric Learning Reality Check (2020), MAP@R.
    """
    place = np.arange(1, before.shape[1] + 1)
    ranks = before + place
    within = (ranks <= relevant[:, None]) & (place <= relevant[:, None])
    precision: npt.NDArray[np.float64] = np.where(within, place / ranks, 0).sum(axis=1) / relevant
    return precision
