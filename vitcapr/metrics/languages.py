"""Captions that find captions of the same picture in another language, through the space they share with pictures."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vitcapr.metrics.ranks import read_rows

_ROWS = 512


class CrossRanks(NamedTuple):
    """Attributes:
    ranks: (q,) the best rank, from 1, of a caption of the same picture.
    picture: (q,) the picture of each query.
    pool: captions that were ranked.
    """

    ranks: npt.NDArray[np.int64]
    picture: npt.NDArray[np.int64]
    pool: int


def cross_ranks(
    queries: npt.NDArray[np.float32],
    query_picture: npt.NDArray[np.integer],
    found: npt.NDArray[np.float32],
    found_picture: npt.NDArray[np.integer],
) -> CrossRanks:
    """Rank all captions of one language for each caption of another.

    Any caption of the same picture is a hit; ties are ranked against us. Queries whose picture has no caption in the
    other language are left out.

    Args:
        queries: (n, E), found: (m, E): unit vectors.
        query_picture: (n,), found_picture: (m,): the picture of each caption.

    Raises:
        UserError: an embedding is not finite.
    """
    asked = np.isin(query_picture, found_picture)
    queries, query_picture = read_rows(queries[asked], 0, len(queries), "asking caption"), query_picture[asked]
    found = read_rows(found, 0, len(found), "found caption")
    ranks = []
    for first in range(0, len(queries), _ROWS):
        # In float64 and rounded once, as in the ranks of pictures: a product in float32 breaks ties at random.
        scores = (queries[first : first + _ROWS].astype(np.float64) @ found.T).astype(np.float32)
        own = query_picture[first : first + _ROWS, None] == found_picture
        best = np.where(own, scores, -np.inf).max(1)
        ranks.append(1 + ((scores >= best[:, None]) & ~own).sum(1))
    each = np.concatenate(ranks) if ranks else np.zeros(0, np.int64)
    return CrossRanks(each.astype(np.int64), query_picture.astype(np.int64), len(found))
