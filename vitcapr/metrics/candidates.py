"""Scores of several captions of each image: the candidates of a system, or those of several systems."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vitcapr.metrics.base import Caption, TokenisedCaptions
from vitcapr.metrics.bootstrap import Array, Measure
from vitcapr.metrics.captions.cider import cider
from vitcapr.metrics.captions.meteor import meteor
from vitcapr.metrics.tokens import tokenize_all

CHOSEN_BY = "sentence CIDEr against the references of the same image"
"""How the oracle of a reranking chooses."""


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


def tokenize_candidates(
    candidates: Mapping[str, Sequence[str]], references: Mapping[str, Sequence[str]], language: str, timeout: float
) -> tuple[list[list[str]], dict[str, list[str]]]:
    """The tokens of each image's candidates and references."""
    flat = [Caption(image, text) for image, texts in candidates.items() for text in texts]
    words, reference_words = tokenize_all(flat, references, language, timeout)
    rest = iter(words)
    return [[next(rest) for _ in texts] for texts in candidates.values()], reference_words


def scorer_of(name: str, references: Mapping[str, Sequence[str]], timeout: float) -> Callable[[Sequence[str]], Measure]:
    """The measure of one tokenised caption an image: ``cider`` or ``meteor``, against tokenised references."""
    if name == "meteor":
        return lambda words: meteor(TokenisedCaptions(words, references, timeout=timeout))
    return lambda words: cider(words, list(references.values()))


def candidate_ciders(
    candidates: Mapping[str, Sequence[str]], references: Mapping[str, Sequence[str]], language: str, timeout: float
) -> list[Array]:
    """CIDEr of each candidate of each image alone, as the stage ``score`` gives it for the same images."""
    words, reference_words = tokenize_candidates(candidates, references, language, timeout)
    return CandidateScores(words, scorer_of("cider", reference_words, timeout)).per_candidate
