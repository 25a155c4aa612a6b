"""A direction of retrieval: queries, and the first matches of each."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vitcapr.formats.embeddings import Embeddings

TITLES = {"i2t": "image to text", "t2i": "text to image"}
"""Titles of both directions, by the beginning of the names of their scores."""
_BLOCK = 512

T = TypeVar("T")
Show = Callable[[int], T]
"""Text or picture for the image or caption at a position of the embeddings."""


class Match(NamedTuple):
    """A match of a query: its position in the pool, its cosine, and whether it is a positive."""

    position: int
    cosine: float
    positive: bool


class Direction(NamedTuple):
    """A direction of retrieval.

    Attributes:
        queries: (Q, E); pool: (P, E). Unit vectors.
        query_owner: (Q,), pool_owner: (P,). A match is a positive where both have the same owner.
    """

    queries: NDArray[np.float32]
    pool: NDArray[np.float32]
    query_owner: NDArray[np.integer]
    pool_owner: NDArray[np.integer]

    def first(self, query: int, count: int) -> list[Match]:
        """Return the nearest matches of a query, the nearest first; of equals the first in the pool."""
        cosines, own = self._matches(query)
        order = np.argsort(-cosines, kind="stable")[:count]
        return [Match(int(place), float(cosines[place]), bool(own[place])) for place in order]

    def nearest(self, query: int, positive: bool) -> Match:
        """Return the nearest positive or the nearest negative of a query."""
        cosines, own = self._matches(query)
        place = int(np.where(own == positive, cosines, -np.inf).argmax())
        return Match(place, float(cosines[place]), positive)

    def nearest_cosines(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(Q,) the cosine of the nearest positive of each query, and that of its nearest negative; -inf for none."""
        positive, negative = [], []
        for first in range(0, len(self.queries), _BLOCK):
            block = slice(first, first + _BLOCK)
            cosines = self.queries[block] @ self.pool.T
            own = self.query_owner[block, None] == self.pool_owner[None]
            positive.append(np.where(own, cosines, -np.inf).max(axis=1))
            negative.append(np.where(own, -np.inf, cosines).max(axis=1))
        return np.concatenate(positive), np.concatenate(negative)

    def _matches(self, query: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        return self.pool @ self.queries[query], self.pool_owner == self.query_owner[query]


def image_to_text(embedded: Embeddings) -> Direction:
    return Direction(embedded.images, embedded.captions, np.arange(len(embedded.images)), embedded.caption_image)


def text_to_image(embedded: Embeddings) -> Direction:
    return Direction(embedded.captions, embedded.images, embedded.caption_image, np.arange(len(embedded.images)))
