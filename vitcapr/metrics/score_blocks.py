"""A block of scores of images x captions, counted as if every score had been computed exactly and rounded once."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int64]

_GROUP = 248
"""Captions counted at a time: their number fits in a byte."""

_STRIP = 24
"""Images counted at a time: their scores stay in the cache, and their number fits in a byte."""
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
        scores[part] = np.einsum("pe,pe->p", images[rows[part]], captions[columns[part]], dtype=np.float64)
    return scores


def slack_of(images: Floats, captions: Floats) -> np.float32:
    """How far any score of a matrix product in float32 may be from the exact one.

    A sum of E products in any order is off by at most E / 2^24 times the norms (Higham, Accuracy and Stability of
    Numerical Algorithms, section 3.1); a few units more are for the roundings of the bounds themselves.
    """
    largest = [np.einsum("re,re->r", rows, rows).max() ** 0.5 for rows in (images, captions)]
    return np.float32((images.shape[1] + 16) * _ROUNDING * largest[0] * largest[1])


class Buffer(threading.local):
    """Room for a block of scores and for comparisons of them; each thread has its own and uses it again."""

    def __init__(self, images: int, captions: int) -> None:
        self.scores = np.empty(images * _padded(captions), np.float32)
        self.flags = np.empty(_STRIP * _padded(captions), np.bool_)


@dataclass
class ScoreBlock:
    """Scores of n images and m captions.

    Attributes:
        images: (n, E), n below 2^16; captions: (m, E).
        scores: (n, W), each of the first m within ``slack`` of the exact score; -inf for a pair that is left out and in
            the columns beyond m, which make W a multiple of the group.
        flags: (_STRIP, W), for comparisons. NumPy makes them twice as fast where W is above 4,096.
        slack: 0 once the scores are exact.
    """

    images: Floats
    captions: Floats
    scores: Floats
    flags: Mask
    slack: np.float32

    @classmethod
    def compute(cls, images: Floats, captions: Floats, slack: np.float32, buffer: Buffer) -> "ScoreBlock":
        """One matrix product, written to the beginning of ``buffer``."""
        width = _padded(len(captions))
        scores = buffer.scores[: len(images) * width].reshape(len(images), width)
        scores[:, len(captions) :] = -np.inf
        np.matmul(images, captions.T, out=scores[:, : len(captions)])
        return cls(images, captions, scores, buffer.flags[: _STRIP * width].reshape(_STRIP, width), slack)

    def leave_out(self, rows: Indices, columns: Indices) -> None:
        self.scores[rows, columns] = -np.inf

    def count_in_columns(self, bounds: Floats) -> Counts:
        """(m,): for each caption the images whose exact score with it is at least its bound."""
        padded = np.pad(bounds, (0, self.scores.shape[1] - len(bounds)), constant_values=np.inf)
        upper, lower = padded + self.slack, padded - self.slack
        certain, possible = np.zeros((2, len(padded)), np.uint16)
        for strip in self._strips():
            certain += _sums(self._reaching(strip, upper), axis=0)
            possible += _sums(self._reaching(strip, lower), axis=0)
        if self._made_exact(certain, possible):
            return self.count_in_columns(bounds)
        columns = np.flatnonzero(certain != possible)
        scores = self.scores.T[columns]
        places, rows = np.nonzero((scores >= lower[columns, None]) & (scores < upper[columns, None]))
        columns = columns[places]
        np.add.at(certain, columns, self._exact(rows, columns) >= padded[columns])
        return certain[: len(bounds)].astype(np.int64)

    def count_in_rows(self, bounds: Floats) -> Counts:
        """(n,): for each image the captions whose exact score with it is at least its bound."""
        upper, lower = (bounds + self.slack)[:, None], (bounds - self.slack)[:, None]
        certain, possible = np.empty((2, len(bounds), len(self._group_starts)), np.uint8)
        for strip in self._strips():
            for sums, limit in ((certain, upper), (possible, lower)):
                flags = self._reaching(strip, limit[strip])
                np.add.reduceat(flags.view(np.uint8), self._group_starts, axis=1, out=sums[strip])
        if self._made_exact(certain, possible):
            return self.count_in_rows(bounds)
        rows, groups = np.nonzero(certain != possible)
        certain[rows, groups] = self._count_in_groups(rows, groups, bounds[rows])
        counts: Counts = certain.sum(axis=1, dtype=np.int64)
        return counts

    def count_in_rows_up_to(self, images: Indices, bounds: Floats, limits: Counts) -> Counts:
        """(k, R): as :meth:`count_in_rows` for R bounds an image of ``images``, where the count is at most the limit.

        Elsewhere it is some number above the limit. Only groups of captions whose greatest score reaches a bound are
        looked at, and of those with more such groups than the limit none.
        """
        greatest = np.maximum.reduceat(self.scores, self._group_starts, axis=1)[images, None]
        counts: Counts = _sums(greatest >= (bounds + self.slack)[..., None], axis=2).astype(np.int64)
        within = counts <= limits
        counts[within] = 0
        rows, places, groups = np.nonzero((greatest >= (bounds - self.slack)[..., None]) & within[..., None])
        np.add.at(counts, (rows, places), self._count_in_groups(images[rows], groups, bounds[rows, places]))
        return counts

    def _count_in_groups(self, rows: Indices, groups: Indices, bounds: Floats) -> Counts:
        """(k,): in each group of captions of an image those whose exact score with it is at least the bound."""
        scores = self.scores.reshape(len(self.images), -1, _GROUP)[rows, groups]
        mask = scores >= (bounds + self.slack)[:, None]
        found, inside = np.nonzero((scores >= (bounds - self.slack)[:, None]) & ~mask)
        mask[found, inside] = self._exact(rows[found], groups[found] * _GROUP + inside) >= bounds[found]
        return _sums(mask, axis=1).astype(np.int64)

    def _strips(self) -> Iterator[slice]:
        for start in range(0, len(self.images), _STRIP):
            yield slice(start, min(start + _STRIP, len(self.images)))

    def _reaching(self, strip: slice, bounds: Floats) -> Mask:
        """(s, W): whether the scores are at least the bounds; overwritten by the next call."""
        flags = self.flags[: strip.stop - strip.start]
        return np.greater_equal(self.scores[strip], bounds, out=flags)

    def _exact(self, rows: Indices, columns: Indices) -> Floats:
        return dot_products(self.images, self.captions, rows, columns)

    def _made_exact(self, certain: npt.NDArray[Any], possible: npt.NDArray[Any]) -> bool:
        """Whether so many scores were in doubt that all have been computed again."""
        if (possible - certain).sum(dtype=np.int64) <= _SHARE * self.scores.size:
            return False
        left_out = np.isneginf(self.scores)
        images = self.images.astype(np.float64)
        for start in range(0, len(self.captions), _PAIRS):
            part = slice(start, min(start + _PAIRS, len(self.captions)))
            self.scores[:, part] = images @ self.captions[part].astype(np.float64).T
        self.scores[left_out] = -np.inf
        self.slack = np.float32(0)
        return True

    @property
    def _group_starts(self) -> Indices:
        return np.arange(0, self.scores.shape[1], _GROUP)


def _sums(flags: Mask, axis: int) -> Bytes:
    """Sums in bytes are several times faster than in wider integers."""
    sums: Bytes = np.add.reduce(flags.view(np.uint8), axis=axis, dtype=np.uint8)
    return sums


def _padded(captions: int) -> int:
    return -(-captions // _GROUP) * _GROUP
