"""A block of scores of images x captions, counted as if every score had been computed exactly and rounded once."""

import threading
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

_STRIP = 48
"""Images counted at a time: their scores stay in the cache, and their number fits in a byte."""
_FEW = 1 / 4
"""If fewer groups than this reach the bounds of a strip, as with a trained model, they alone are counted in rows."""
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
        greatest: (n, W / _GROUP), of each group of captions, once they are counted.
        flags: (_STRIP, W), for comparisons. NumPy makes them twice as fast where W is above 4,096.
        slack: 0 once the scores are exact.
    """

    images: Floats
    captions: Floats
    scores: Floats
    greatest: Floats
    flags: Mask
    slack: np.float32

    @classmethod
    def compute(cls, images: Floats, captions: Floats, slack: np.float32, buffer: Buffer) -> "ScoreBlock":
        """One matrix product, written to the beginning of ``buffer``."""
        width = _padded(len(captions))
        scores = buffer.scores[: len(images) * width].reshape(len(images), width)
        scores[:, len(captions) :] = -np.inf
        np.matmul(images, captions.T, out=scores[:, : len(captions)])
        flags = buffer.flags[: _STRIP * width].reshape(_STRIP, width)
        return cls(images, captions, scores, np.empty((len(images), width // _GROUP), np.float32), flags, slack)

    def leave_out(self, rows: Indices, columns: Indices) -> None:
        self.scores[rows, columns] = -np.inf

    def count(self, image_bounds: Floats, caption_bounds: Floats) -> tuple[Counts, Counts]:
        """How many captions of each image, and images of each caption, have an exact score of at least the bound.

        Args:
            image_bounds: (n,).
            caption_bounds: (m,).

        Returns:
            (n,), (m,). Both directions are counted while a strip of images is in the cache.
        """
        starts = np.arange(self.greatest.shape[1]) * _GROUP
        in_rows = np.empty((2, *self.greatest.shape), np.uint8)
        in_columns = np.zeros((2, self.scores.shape[1]), np.uint16)
        padded = np.pad(caption_bounds, (0, self.scores.shape[1] - len(caption_bounds)), constant_values=np.inf)
        for start in range(0, len(self.images), _STRIP):
            strip = slice(start, start + _STRIP)
            scores, greatest, bounds = self.scores[strip], self.greatest[strip], image_bounds[strip, None]
            flags = self.flags[: len(scores)]
            for certain_or_possible, off in zip(in_columns, (self.slack, -self.slack), strict=True):
                certain_or_possible += _sums(np.greater_equal(scores, padded + off, out=flags), axis=0)
            np.maximum.reduceat(scores, starts, axis=1, out=greatest)
            in_rows[0, strip], in_rows[1, strip] = 0, greatest >= bounds - self.slack
            if in_rows[1, strip].mean() < _FEW:
                continue
            for certain_or_possible, off in zip(in_rows[:, strip], (self.slack, -self.slack), strict=True):
                np.greater_equal(scores, bounds + off, out=flags)
                np.add.reduceat(flags.view(np.uint8), starts, axis=1, out=certain_or_possible)
        if self._made_exact(*in_rows) or self._made_exact(*in_columns):
            return self.count(image_bounds, caption_bounds)
        captions = self._settled_rows(in_rows[0], in_rows[1], image_bounds)
        return captions, self._settled_columns(in_columns[0], in_columns[1], padded)[: len(caption_bounds)]

    def count_in_rows_up_to(self, images: Indices, bounds: Floats, limits: Counts) -> Counts:
        """(k, R): captions as in :meth:`count`, which comes first, for R bounds an image, where at most the limit.

        Elsewhere it is some number above the limit. Only groups of captions whose greatest score reaches a bound are
        looked at, and of those with more such groups than the limit none.
        """
        greatest = self.greatest[images, None]
        counts: Counts = _sums(greatest >= (bounds + self.slack)[..., None], axis=2).astype(np.int64)
        within = counts <= limits
        counts[within] = 0
        rows, places, groups = np.nonzero((greatest >= (bounds - self.slack)[..., None]) & within[..., None])
        np.add.at(counts, (rows, places), self._count_in_groups(images[rows], groups, bounds[rows, places]))
        return counts

    def _settled_rows(self, certain: Bytes, possible: Bytes, bounds: Floats) -> Counts:
        """(n,): from how many scores in each group certainly, and how many possibly, reach the bounds, (n,)."""
        rows, groups = np.nonzero(certain != possible)
        certain[rows, groups] = self._count_in_groups(rows, groups, bounds[rows])
        counts: Counts = certain.sum(axis=1, dtype=np.int64)
        return counts

    def _settled_columns(
        self, certain: npt.NDArray[np.uint16], possible: npt.NDArray[np.uint16], bounds: Floats
    ) -> Counts:
        """(W,): from how many scores in each column certainly, and how many possibly, reach the bounds, (W,)."""
        columns = np.flatnonzero(certain != possible)
        scores, reached = self.scores.T[columns], bounds[columns, None]
        places, rows = np.nonzero((scores >= reached - self.slack) & (scores < reached + self.slack))
        columns = columns[places]
        np.add.at(certain, columns, self._exact(rows, columns) >= bounds[columns])
        return certain.astype(np.int64)

    def _count_in_groups(self, rows: Indices, groups: Indices, bounds: Floats) -> Counts:
        """(k,): in each group of captions of an image those whose exact score with it is at least the bound."""
        scores = self.scores.reshape(len(self.images), -1, _GROUP)[rows, groups]
        mask = scores >= (bounds + self.slack)[:, None]
        found, inside = np.nonzero((scores >= (bounds - self.slack)[:, None]) & ~mask)
        mask[found, inside] = self._exact(rows[found], groups[found] * _GROUP + inside) >= bounds[found]
        return _sums(mask, axis=1).astype(np.int64)

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


def _sums(flags: Mask, axis: int) -> Bytes:
    """Sums in bytes are several times faster than in wider integers."""
    sums: Bytes = np.add.reduce(flags.view(np.uint8), axis=axis, dtype=np.uint8)
    return sums


def _padded(captions: int) -> int:
    return -(-captions // _GROUP) * _GROUP
