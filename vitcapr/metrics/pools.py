"""Retrieval of held-out queries against candidate pools: the retrieval ranks of the positives of these queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitcapr.artefacts.embeddings import Embeddings
from vitcapr.artefacts.metrics import Score
from vitcapr.artefacts.pools import Pools
from vitcapr.errors import UserError
from vitcapr.metrics.bootstrap import Measure, mean_measure, ratio_measure
from vitcapr.metrics.ranks import rank_matches
from vitcapr.metrics.report import plain_score, score_of
from vitcapr.metrics.retrieval import DEPTHS

REMEDY = "run the data stage and embed the split again"
SPLIT = "test"
"""What queries and candidates are drawn from."""


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
        found: the split that the pools are of; every image has a caption.

    Raises:
        UserError: a query's image is no candidate, or nothing of a pool was embedded.
    """
    texts = np.isin(found.caption_row, pools.text_candidates)
    owners, owner = np.unique(found.caption_image[texts], return_inverse=True)
    asked = np.isin(found.image_row[owners], pools.image_queries)
    candidates = np.flatnonzero(np.isin(found.image_row, pools.image_candidates))
    queries = np.isin(found.caption_row, pools.text_queries)
    if not asked.any() or not queries.any() or not np.isin(found.caption_image[queries], candidates).all():
        raise UserError("the pools are not of the images and captions that were embedded", remedy=REMEDY)
    # Ranks are computed for images that have captions: all owners of the candidate texts are ranked, and all candidate
    # images keep a caption. The ranks of the queries are then picked.
    of_images = rank_matches(found.images[owners], found.captions[texts], owner)
    firsts = np.searchsorted(found.caption_image, candidates)
    kept = np.union1d(firsts, np.flatnonzero(queries))
    of_texts = rank_matches(
        found.images[candidates], found.captions[kept], np.searchsorted(candidates, found.caption_image[kept])
    )
    return PoolRanks(
        of_images.i2t[asked],
        of_texts.t2i[queries[kept]],
        found.caption_image[kept][queries[kept]].astype(np.int64),
        int(texts.sum()),
        len(candidates),
    )
