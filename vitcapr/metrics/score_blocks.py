"""A block of scores of images x captions, counted as if every score had been computed exactly and rounded once."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]
Bytes = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int64]

_BYTE = 255
"""Scores counted at a time in a byte."""

_TILE = 16 * _BYTE
"""Captions in a tile."""
_ROUNDING = 2.0**-24
_PAIRS = 512
"""Pairs computed again at a time; bounds the memory at two times _PAIRS x E numbers."""
_SHARE = 1 / 64
"""If more of a block's scores than this are in doubt, as in collapsed embeddings, all are computed again."""


def dot_products(images: Floats, captions: Floats, rows: Indices, columns: Indices) -> Floats:
    """(P,) float32: the score of each pair of an image ``rows[p]`` and a caption ``columns[p]``.

    Products of float32 are exact in float64 and their sum is off by some 2^-50, so rounding it to float32 gives the
    same number in every order of the sum.
    """
    scores = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _PAIRS):
        part = slice(start, start + _PAIRS)
        left, right = images[rows[part]].astype(np.float64), captions[columns[part]].astype(np.float64)
        scores[part] = np.einsum("pe,pe->p", left, right)
    return scores


def slack_of(images: Floats, captions: Floats) -> np.float32:
    """How far any score of a matrix product in float32 may be from the exact one.

    A sum of E products in any order is off by at most E / 2^24 times the norms (Higham, Accuracy and Stability of
    Numerical Algorithms, section 3.1); a few units more are for the roundings of the bounds themselves.
    """
    largest = [np.einsum("re,re->r", rows, rows).max() ** 0.5 for rows in (images, captions)]
    return np.float32((images.shape[1] + 16) * _ROUNDING * largest[0] * largest[1])


@dataclass
class ScoreBlock:
    """Scores of n images and m captions.

    Attributes:
        images: (n, E), n at most 255; captions: (m, E).
        scores: (n, m), each within ``slack`` of the exact score; -inf for a pair that is left out.
        slack: 0 once the scores are exact.
    """

    images: Floats
    captions: Floats
    scores: Floats
    slack: np.float32

    @classmethod
    def compute(cls, images: Floats, captions: Floats, slack: np.float32, buffer: Floats) -> "ScoreBlock":
        """One matrix product, written to the beginning of ``buffer``."""
        scores = buffer[: len(images) * len(captions)].reshape(len(images), len(captions))
        np.matmul(images, captions.T, out=scores)
        return cls(images, captions, scores, slack)

    def tiles(self) -> Iterator[tuple["ScoreBlock", slice]]:
        """The same scores in blocks that fit in a core's cache, and which captions each has."""
        for start in range(0, len(self.captions), _TILE):
            part = slice(start, min(start + _TILE, len(self.captions)))
            yield ScoreBlock(self.images, self.captions[part], self.scores[:, part], self.slack), part

    def leave_out(self, rows: Indices, columns: Indices) -> None:
        self.scores[rows, columns] = -np.inf

    def count_in_columns(self, bounds: Floats) -> Counts:
        """(m,): for each caption the images whose exact score with it is at least its bound."""
        if not self.slack:
            return _count_down(self.scores >= bounds)
        low, high = bounds - self.slack, bounds + self.slack
        possible, certain = _count_down(self.scores >= low), _count_down(self.scores > high)
        columns = np.flatnonzero(possible != certain)
        doubtful = self.scores[:, columns]
        rows, places = np.nonzero((doubtful >= low[columns]) & (doubtful <= high[columns]))
        columns = columns[places]
        if self._were_too_many(rows):
            return self.count_in_columns(bounds)
        exact = self._exact(rows, columns)
        return certain + np.bincount(columns[exact >= bounds[columns]], minlength=len(bounds))

    def count_in_rows(self, bounds: Floats) -> Counts:
        """(n,): for each image the captions whose exact score with it is at least its bound."""
        if not self.slack:
            return _row_sums(_count_across(self.scores >= bounds[:, None]))
        possible = _count_across(self.scores >= (bounds - self.slack)[:, None])
        certain = _count_across(self.scores > (bounds + self.slack)[:, None])
        rows, groups = np.nonzero(possible != certain)
        certain[rows, groups] = self.count_in_groups(rows, groups, bounds[rows])
        return _row_sums(certain)

    def count_in_rows_up_to(self, bounds: Floats, limits: Counts) -> Counts:
        """(n, R): as :meth:`count_in_rows` for R bounds an image, where the count is at most the limit.

        Elsewhere it is some number above the limit. This takes little more than the greatest score of each group.
        """
        greatest = np.maximum.reduceat(self.scores, _group_starts(self.scores.shape[1]), axis=1)[:, None]
        counts = np.count_nonzero(greatest > (bounds + self.slack)[..., None], axis=2).astype(np.int64)
        within = counts <= limits
        rows, places = np.nonzero(within)
        entries, groups = np.nonzero(greatest[rows, 0] >= (bounds[rows, places] - self.slack)[:, None])
        rows, places = rows[entries], places[entries]
        counts[within] = 0
        np.add.at(counts, (rows, places), self.count_in_groups(rows, groups, bounds[rows, places]))
        return counts

    def count_in_groups(self, rows: Indices, groups: Indices, bounds: Floats) -> Bytes:
        """(P,): the captions in group ``groups[p]`` whose exact score with image ``rows[p]`` is at least its bound."""
        columns = groups[:, None] * _BYTE + np.arange(_BYTE)
        inside = columns < len(self.captions)
        scores = self.scores[rows[:, None], np.minimum(columns, len(self.captions) - 1)]
        counted = inside & (scores > (bounds + self.slack)[:, None])
        found, places = np.nonzero(inside & ~counted & (scores >= (bounds - self.slack)[:, None]))
        if self._were_too_many(found):
            return self.count_in_groups(rows, groups, bounds)
        exact = self._exact(rows[found], columns[found, places])
        counted[found, places] = exact >= bounds[found]
        counts: Bytes = np.add.reduce(counted.view(np.uint8), axis=1, dtype=np.uint8)
        return counts

    def _exact(self, rows: Indices, columns: Indices) -> Floats:
        if not self.slack:
            return self.scores[rows, columns]
        return dot_products(self.images, self.captions, rows, columns)

    def _were_too_many(self, doubtful: Indices) -> bool:
        """If they are, the whole block is computed again, and then none is in doubt."""
        if not self.slack or len(doubtful) <= _SHARE * self.scores.size:
            return False
        left_out = np.isneginf(self.scores)
        self.scores[...] = self.images.astype(np.float64) @ self.captions.astype(np.float64).T
        self.scores[left_out] = -np.inf
        self.slack = np.float32(0)
        return True


def _count_down(mask: npt.NDArray[np.bool_]) -> Counts:
    """(n, m) -> (m,), n at most 255: summed in bytes, several times faster than in wider integers."""
    counts: Bytes = np.add.reduce(mask.view(np.uint8), axis=0, dtype=np.uint8)
    return counts.astype(np.int64)


def _count_across(mask: npt.NDArray[np.bool_]) -> Bytes:
    """(n, m) -> (n, groups), a group being 255 columns, the last one less."""
    return np.add.reduceat(mask.view(np.uint8), _group_starts(mask.shape[1]), axis=1, dtype=np.uint8)


def _row_sums(counts: Bytes) -> Counts:
    sums: Counts = counts.sum(axis=1, dtype=np.int64)
    return sums


def _group_starts(columns: int) -> Indices:
    return np.arange(0, columns, _BYTE)
