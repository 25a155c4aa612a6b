"""A block of scores of images x captions, counted as if every score had been computed exactly and rounded once."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]

_GROUP = 248
"""Scores counted at a time: their number fits in a byte, and their flags in words of eight."""

_TILE = 16 * _GROUP
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
        scores: (n, W), each of the first m within ``slack`` of the exact score; -inf for a pair that is left out and in
            the columns beyond m, which make W a multiple of the group.
        slack: 0 once the scores are exact.
    """

    images: Floats
    captions: Floats
    scores: Floats
    slack: np.float32

    @staticmethod
    def buffer(images: int, captions: int) -> Floats:
        """Room for the scores of that many images and captions."""
        return np.empty(images * _padded(captions), np.float32)

    @classmethod
    def compute(cls, images: Floats, captions: Floats, slack: np.float32, buffer: Floats) -> "ScoreBlock":
        """One matrix product, written to the beginning of ``buffer``."""
        width = _padded(len(captions))
        scores = buffer[: len(images) * width].reshape(len(images), width)
        scores[:, len(captions) :] = -np.inf
        np.matmul(images, captions.T, out=scores[:, : len(captions)])
        return cls(images, captions, scores, slack)

    def tiles(self) -> Iterator[tuple["ScoreBlock", slice]]:
        """The same scores in blocks that fit in a cache, and which captions each has."""
        for start in range(0, len(self.captions), _TILE):
            part = slice(start, min(start + _TILE, len(self.captions)))
            yield ScoreBlock(self.images, self.captions[part], self.scores[:, start : start + _TILE], self.slack), part

    def leave_out(self, rows: Indices, columns: Indices) -> None:
        self.scores[rows, columns] = -np.inf

    def count_in_columns(self, bounds: Floats) -> Counts:
        """(m,): for each caption the images whose exact score with it is at least its bound."""
        padding = self.scores.shape[1] - len(bounds)
        mask = self._at_least(np.pad(bounds, (0, padding), constant_values=np.inf)[None])
        # Sums in bytes are several times faster than in wider integers.
        counts: Counts = np.add.reduce(mask.view(np.uint8), axis=0, dtype=np.uint8)[: len(bounds)].astype(np.int64)
        return counts

    def count_in_rows(self, bounds: Floats) -> Counts:
        """(n,): for each image the captions whose exact score with it is at least its bound."""
        mask = self._at_least(bounds[:, None])
        groups = np.add.reduceat(mask.view(np.uint8), self._group_starts, axis=1, dtype=np.uint8)
        counts: Counts = groups.sum(axis=1, dtype=np.int64)
        return counts

    def count_in_rows_up_to(self, images: Indices, bounds: Floats, limits: Counts) -> Counts:
        """(k, R): as :meth:`count_in_rows` for R bounds an image of ``images``, where the count is at most the limit.

        Elsewhere it is some number above the limit. Only groups of captions whose greatest score reaches a bound are
        looked at, and of those with more such groups than the limit none.
        """
        greatest = np.maximum.reduceat(self.scores[images], self._group_starts, axis=1)[:, None]
        counts: Counts = (greatest > (bounds + self.slack)[..., None]).sum(axis=2, dtype=np.int64)
        within = counts <= limits
        counts[within] = 0
        rows, places = np.nonzero(within)
        entries, groups = np.nonzero(greatest[rows, 0] >= (bounds[rows, places] - self.slack)[:, None])
        rows, places = rows[entries], places[entries]
        reached = bounds[rows, places]
        scores = self.scores.reshape(len(self.images), -1, _GROUP)[images[rows], groups]
        mask = scores > (reached + self.slack)[:, None]
        found, inside = np.nonzero((scores >= (reached - self.slack)[:, None]) & ~mask)
        mask[found, inside] = self._exact(images[rows[found]], groups[found] * _GROUP + inside) >= reached[found]
        np.add.at(counts, (rows, places), np.add.reduce(mask.view(np.uint8), axis=1, dtype=np.uint8))
        return counts

    def _at_least(self, bounds: Floats) -> Mask:
        """(n, W): whether the exact scores are at least ``bounds``, (n, 1) or (1, W)."""
        if not self.slack:
            reached: Mask = self.scores >= bounds
            return reached
        certain: Mask = self.scores > bounds + self.slack
        possible: Mask = self.scores >= bounds - self.slack
        # Eight at a time, for there are few that differ.
        words = np.flatnonzero(certain.view(np.uint64) != possible.view(np.uint64))
        doubtful = (words[:, None] * 8 + np.arange(8)).ravel()
        doubtful = doubtful[certain.flat[doubtful] != possible.flat[doubtful]]
        if len(doubtful) > _SHARE * self.scores.size:
            self._make_exact()
            return self._at_least(bounds)
        rows, columns = np.divmod(doubtful, self.scores.shape[1])
        certain[rows, columns] = self._exact(rows, columns) >= np.broadcast_to(bounds, certain.shape)[rows, columns]
        return certain

    def _exact(self, rows: Indices, columns: Indices) -> Floats:
        if not self.slack:
            return self.scores[rows, columns]
        return dot_products(self.images, self.captions, rows, columns)

    def _make_exact(self) -> None:
        left_out = np.isneginf(self.scores)
        exact = self.images.astype(np.float64) @ self.captions.astype(np.float64).T
        self.scores[:, : len(self.captions)] = exact
        self.scores[left_out] = -np.inf
        self.slack = np.float32(0)

    @property
    def _group_starts(self) -> Indices:
        return np.arange(0, self.scores.shape[1], _GROUP)


def _padded(captions: int) -> int:
    return -(-captions // _GROUP) * _GROUP
