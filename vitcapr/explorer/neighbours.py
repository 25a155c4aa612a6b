"""What lies next to each image and each reference in the space of a retrieval model."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitcapr.artefacts.embeddings import Embeddings

SHOWN = 6
"""Neighbours of each."""
_BLOCK = 512
Near = NDArray[np.intp]
Cosines = NDArray[np.float32]


@dataclass(frozen=True)
class Nearest:
    """The K nearest of a pool to each of Q queries, the nearest first.

    Attributes:
        place: (Q, K), in the pool.
        cosine: (Q, K).
    """

    place: Near
    cosine: Cosines


def nearest(queries: Cosines, pool: Cosines, count: int = SHOWN, without_itself: bool = False) -> Nearest:
    """The ``count`` nearest of ``pool`` (P, E) to each of ``queries`` (Q, E), in blocks of queries; fewer if P is less.

    Args:
        without_itself: queries and pool are the same, and no query is its own neighbour.
    """
    count = min(count, len(pool) - without_itself)
    places, cosines = [np.empty((0, count), np.intp)], [np.empty((0, count), np.float32)]
    for first in range(0, len(queries), _BLOCK):
        block = queries[first : first + _BLOCK] @ pool.T
        if without_itself:
            own = np.arange(len(block))
            block[own, first + own] = -np.inf
        best = np.argpartition(-block, max(count - 1, 0), axis=1)[:, :count]
        found = np.take_along_axis(block, best, axis=1)
        order = np.argsort(-found, axis=1, kind="stable")
        places.append(np.take_along_axis(best, order, axis=1))
        cosines.append(np.take_along_axis(found, order, axis=1))
    return Nearest(np.concatenate(places), np.concatenate(cosines))


def nearest_own(embedded: Embeddings) -> tuple[Near, Cosines]:
    """(N,) the place of the nearest of each image's own captions, -1 where it has none; (M,) the cosine of each caption
    with its own image."""
    owner = embedded.caption_image
    cosines = np.einsum("me,me->m", embedded.captions, embedded.images[owner])
    place = np.full(len(embedded.images), -1, np.intp)
    order = np.argsort(cosines, kind="stable")
    place[owner[order]] = order  # The last one stays: the nearest.
    return place, cosines
