"""Cross-language retrieval: captions retrieve captions of the same picture in another language in the shared space."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.scores import Score
from vitcapr.metrics.bootstrap import plain_score, ratio_measure, score_of
from vitcapr.metrics.ranks import read_rows
from vitcapr.metrics.retrieval import DEPTHS

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

    def scores(self, name: str, samples: int, seed: int) -> dict[str, Score]:
        """Recall and the median rank, named ``name_...``; resampling takes pictures with all their captions."""
        _, place = np.unique(self.picture, return_inverse=True)
        counts = np.bincount(place)
        hits = {depth: np.bincount(place, weights=self.ranks <= depth) for depth in DEPTHS}
        recalls = {
            f"{name}_recall_{depth}": score_of(ratio_measure(hits[depth], counts), samples, seed) for depth in DEPTHS
        }
        return recalls | {f"{name}_median_rank": plain_score(float(np.median(self.ranks)), len(self.ranks))}

    @property
    def shown(self) -> str:
        """One line for people."""
        recalls = " / ".join(f"{100 * float(np.mean(self.ranks <= depth)):.1f}" for depth in DEPTHS)
        return f"R@1/5/10 {recalls} among {self.pool} captions"


def pairs_of_languages(
    found: Embeddings, spoken: npt.NDArray[np.object_], languages: Sequence[str]
) -> Iterator[tuple[str, CrossRanks]]:
    """The ranks of each pair of languages that have captions of the same pictures, by names such as ``en_to_zh``.

    Args:
        spoken: (m,) the language of each caption that was embedded.
    """
    for asked, answering in permutations(languages, 2):
        a, b = spoken == asked, spoken == answering
        ranked = cross_ranks(found.captions[a], found.caption_image[a], found.captions[b], found.caption_image[b])
        if len(ranked.ranks):
            yield f"{asked}_to_{answering}", ranked


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
