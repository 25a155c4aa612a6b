"""What each of an image's candidates would contribute to a score of the split, if it were chosen."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from vitcapr.metrics.bootstrap import Array, Measure


class CandidateScores:
    """A corpus score as a function of the candidate chosen for each image.

    The document frequencies of CIDEr are those of the references, whatever is chosen, so the score of every choice is
    exactly what scoring those captions would give.

    Args:
        words: the tokenised candidates of each of B images, at least one each.
        score: the measure of one caption an image, (B,) in the same order.
    """

    def __init__(self, words: Sequence[Sequence[str]], score: Callable[[Sequence[str]], Measure]) -> None:
        ranks = range(max(map(len, words)))
        # Where an image has fewer candidates, its last one stands in; such a rank is never chosen.
        measures = [score([texts[min(rank, len(texts) - 1)] for texts in words]) for rank in ranks]
        self._statistics = np.stack([measure.statistics for measure in measures], axis=1)
        self._aggregate = measures[0].aggregate
        self.counts = np.array([len(texts) for texts in words])

    def of_choice(self, chosen: npt.NDArray[np.integer]) -> float:
        """The score of the split if image ``i`` has its candidate ``chosen[i]``, (B,)."""
        rows = np.arange(len(chosen))
        return float(self._aggregate(self._statistics[rows, chosen].sum(axis=0)))

    @property
    def per_candidate(self) -> list[Array]:
        """The score of each candidate of each image alone."""
        values = self._aggregate(self._statistics)
        return [row[:count] for row, count in zip(values, self.counts, strict=True)]
