"""Exact nearest neighbours by cosine, block by block, so that memory need not hold all points."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from vitcapr.errors import UserError

BLOCK = 4096
"""Points embedded and compared at a time."""


class ExactIndex:
    """The ``k`` points nearest to each query among all that are added; nothing but those is kept.

    Args:
        queries: (Q, E) float32 of unit length.
        k: how many are wanted; fewer are found where fewer are added.
    """

    def __init__(self, queries: np.ndarray, k: int) -> None:
        self._queries, self._k = queries.astype(np.float32, copy=False), k
        self._scores = np.empty((len(queries), 0), np.float32)
        self._numbers = np.empty((len(queries), 0), np.int64)
        self._added = 0

    def add(self, points: np.ndarray) -> None:
        """points: (n, E) float32 of unit length; they are numbered in the order in which they are added."""
        numbers = np.arange(self._added, self._added + len(points))
        self._added += len(points)
        scores = np.concatenate([self._scores, self._queries @ points.T], axis=1)
        numbers = np.concatenate([self._numbers, np.broadcast_to(numbers, (len(scores), len(points)))], axis=1)
        # Stable, and earlier points stand before later ones: of equally near points the first is taken.
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self._k]
        self._scores = np.take_along_axis(scores, order, axis=1)
        self._numbers = np.take_along_axis(numbers, order, axis=1)

    def nearest(self) -> tuple[np.ndarray, np.ndarray]:
        """Cosines (Q, k) float32, falling, and the numbers of the points (Q, k) int64."""
        return self._scores, self._numbers


class FaissIndex:
    """The same by ``faiss.IndexFlatIP``, which keeps all points in memory.

    Raises:
        UserError: faiss is not installed.
    """

    def __init__(self, queries: np.ndarray, k: int) -> None:
        self._queries, self._k = np.ascontiguousarray(queries, np.float32), k
        self._index = _faiss().IndexFlatIP(queries.shape[1])

    def add(self, points: np.ndarray) -> None:
        self._index.add(np.ascontiguousarray(points, np.float32))

    def nearest(self) -> tuple[np.ndarray, np.ndarray]:
        scores, numbers = self._index.search(self._queries, min(self._k, self._index.ntotal))
        return scores, numbers


INDEXES: dict[str, Callable[[np.ndarray, int], ExactIndex | FaissIndex]] = {"exact": ExactIndex, "faiss": FaissIndex}


def search(
    queries: np.ndarray,
    items: Any,
    embed: Callable[[Any], np.ndarray],
    k: int,
    index: str = "exact",
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` of ``items`` nearest to each query.

    Args:
        queries: (Q, E) float32 of unit length.
        items: anything that can be cut and counted: rows of a store, sentences.
        embed: from some of the items to their points, (n, E) float32 of unit length.
        index: a key of ``INDEXES``.
        advance: told the number of items after each block.

    Returns:
        Cosines (Q, k) float32, falling, and the positions in ``items`` (Q, k) int64; of equal ones the first comes
        first, unless faiss searches. Fewer than k where there are fewer items.
    """
    found = INDEXES[index](queries, k)
    for block in _blocks(items):
        found.add(embed(block))
        advance(len(block))
    return found.nearest()


def _blocks(items: Any) -> Iterator[Any]:
    for first in range(0, len(items), BLOCK):
        yield items[first : first + BLOCK]


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        remedy = "pip install 'vitcapr[faiss]', or leave out --index faiss: the results are the same"
        raise UserError("faiss is not installed", remedy=remedy) from error
    return faiss
