"""Retrieval of held-out queries against candidate pools: the retrieval ranks of the positives of these queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.pairs import Pools
from vitcapr.formats.scores import Score
from vitcapr.metrics.bootstrap import Measure, mean_measure, plain_score, ratio_measure, score_of
from vitcapr.metrics.retrieval import DEPTHS

REMEDY = "run the data stage and embed the split again"
SPLIT = "test"
"""What queries and their matches are drawn from."""
_BLOCK = 256
"""Queries that are scored against all candidates at a time."""

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.integer]


@dataclass(frozen=True)
class PoolRanks:
    """Rank 1 is the best; tied candidates rank before the positive.

    Attributes:
        i2t: (Q,) of each query image, the rank of its best caption among ``texts`` captions.
        t2i: (T,) of each query text, the rank of its image among ``images`` images.
        picture: (T,) the image of each query text, by which texts are resampled.
    """

    i2t: npt.NDArray[np.int32]
    t2i: npt.NDArray[np.int32]
    picture: npt.NDArray[np.int64]
    texts: int
    images: int

    def measures(self) -> dict[str, Measure]:
        """Recall@K in both directions."""
        _, place = np.unique(self.picture, return_inverse=True)
        counts = np.bincount(place)
        found = {f"i2t_recall_{depth}": mean_measure(self.i2t <= depth) for depth in DEPTHS}
        hits = {depth: np.bincount(place, weights=self.t2i <= depth) for depth in DEPTHS}
        return found | {f"t2i_recall_{depth}": ratio_measure(hits[depth], counts) for depth in DEPTHS}

    def scores(self, samples: int, seed: int) -> dict[str, Score]:
        """The measures with their intervals, and the median ranks."""
        found = {name: score_of(measure, samples, seed) for name, measure in self.measures().items()}
        found["i2t_median_rank"] = plain_score(float(np.median(self.i2t)), len(self.i2t))
        # As everywhere, n counts images: here those that the query texts are of.
        found["t2i_median_rank"] = plain_score(float(np.median(self.t2i)), len(np.unique(self.picture)))
        return found

    def protocol(self, languages: Sequence[str]) -> list[str]:
        """The parts of the protocol that a comparison with other results needs."""
        return [
            f"i2t:{len(self.i2t)}images of {self.texts}captions,any own caption",
            f"t2i:{len(self.t2i)}captions of {self.images}images",
            *("ties:pessimistic", "scores:float32", f"split:{SPLIT}", f"lang:{'+'.join(languages)}"),
        ]

    def shown(self) -> Iterator[str]:
        """A line for each direction."""
        for name, ranks, pool in (("i2t", self.i2t, self.texts), ("t2i", self.t2i, self.images)):
            recalls = " / ".join(f"{100 * float(np.mean(ranks <= depth)):.1f}" for depth in DEPTHS)
            yield f"{name}: R@1/5/10 {recalls}, {len(ranks):,} queries among {pool:,} candidates"


def rank_pools(found: Embeddings, pools: Pools) -> PoolRanks:
    """Rank the candidates that were embedded for each query that was.

    Where captions of one language were embedded, the other queries and candidates are left out.

    Args:
        found: the split that the pools are of, and the splits of distractors.

    Raises:
        UserError: a query's image is no candidate, or nothing of a pool was embedded.
    """
    texts = np.flatnonzero(np.isin(found.caption_row, pools.text_candidates))
    asked = np.flatnonzero(np.isin(found.image_row, pools.image_queries))
    asked = asked[np.isin(asked, found.caption_image[texts])]
    candidates = np.flatnonzero(np.isin(found.image_row, pools.image_candidates))
    queries = np.flatnonzero(np.isin(found.caption_row, pools.text_queries))
    owners = found.caption_image[queries]
    if not len(asked) or not len(queries) or not np.isin(owners, candidates).all():
        raise UserError("the pools are not of the images and captions that were embedded", remedy=REMEDY)
    return PoolRanks(
        rank_candidates(found.images[asked], found.captions[texts], asked, found.caption_image[texts]),
        rank_candidates(found.captions[queries], found.images[candidates], owners, candidates),
        owners.astype(np.int64),
        len(texts),
        len(candidates),
    )


def rank_candidates(queries: Floats, candidates: Floats, asked: Rows, offered: Rows) -> npt.NDArray[np.int32]:
    """(Q,) int32: the rank of each query's best match, tied candidates before it.

    Args:
        queries: (Q, E); candidates: (C, E). Scores are as in :func:`~vitcapr.metrics.ranks.rank_matches`.
        asked: (Q,) and offered: (C,) the image of each; a candidate matches a query of the same image. Every query has
            a match.
    """
    ranks = np.empty(len(queries), np.int32)
    exact = candidates.astype(np.float64).T
    for start in range(0, len(queries), _BLOCK):
        rows = slice(start, start + _BLOCK)
        scores = (queries[rows].astype(np.float64) @ exact).astype(np.float32)
        own = asked[rows, None] == offered
        best = np.where(own, scores, -np.inf).max(axis=1)
        ranks[rows] = 1 + ((scores >= best[:, None]) & ~own).sum(axis=1)
    return ranks


def joined(parts: Sequence[Embeddings]) -> Embeddings:
    """The embeddings of several splits as those of one."""
    before = np.cumsum([0, *(len(part.images) for part in parts[:-1])])
    owners = [part.caption_image + first for part, first in zip(parts, before, strict=True)]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Embeddings._fields[:-1]}
    return Embeddings(**columns, caption_image=np.concatenate(owners).astype(np.int32))


def origin(
    found: Embeddings, pools: Pools, image_splits: npt.NDArray[np.str_], caption_splits: npt.NDArray[np.str_]
) -> list[str]:
    """Where distractors come from, for the protocol: candidates of each split other than the queries'.

    Args:
        found: what was embedded; other candidates are not ranked.
        image_splits, caption_splits: the split of every row of the data set.
    """
    texts = caption_splits[np.intersect1d(found.caption_row, pools.text_candidates)]
    images = image_splits[np.intersect1d(found.image_row, pools.image_candidates)]
    others = sorted({*texts, *images} - {SPLIT})
    return [f"distractors:{(texts == o).sum()}captions and {(images == o).sum()}images of {o}" for o in others]
