"""Scores of several captions of each image: the candidates of a system, or those of several systems."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vitcapr.metrics.bootstrap import Array
from vitcapr.metrics.caption_metric import Caption
from vitcapr.metrics.captions.cider import cider
from vitcapr.metrics.java import tokenize_all

CHOSEN_BY = "sentence CIDEr against the references of the same image"
"""How the oracle of a reranking chooses."""


class CandidateScores:
    """CIDEr of a corpus as a function of the candidate chosen for each image.

    The document frequencies of CIDEr are those of the references, whatever is chosen, so the score of every choice is
    exactly what scoring those captions would give.

    Args:
        words: the tokenised candidates of each of B images, at least one each.
        references: the tokenised references of each image, in the same order.
    """

    def __init__(self, words: Sequence[Sequence[str]], references: Mapping[str, Sequence[str]]) -> None:
        ranks = range(max(map(len, words)))
        # Where an image has fewer candidates, its last one stands in; such a rank is never chosen.
        others = list(references.values())
        measures = [cider([texts[min(rank, len(texts) - 1)] for texts in words], others) for rank in ranks]
        self._statistics = np.stack([measure.statistics for measure in measures], axis=1)
        self._aggregate = measures[0].aggregate
        self.counts = np.array([len(texts) for texts in words])

    def of_choice(self, chosen: npt.NDArray[np.integer]) -> float:
        """Return the score of the split if image ``i`` has its candidate ``chosen[i]``, (B,)."""
        rows = np.arange(len(chosen))
        return float(self._aggregate(self._statistics[rows, chosen].sum(axis=0)))

    @property
    def per_candidate(self) -> list[Array]:
        """The score of each candidate of each image alone."""
        values = self._aggregate(self._statistics)
        return [row[:count] for row, count in zip(values, self.counts, strict=True)]


def tokenize_candidates(
    candidates: Mapping[str, Sequence[str]], references: Mapping[str, Sequence[str]], language: str
) -> tuple[list[list[str]], dict[str, list[str]]]:
    """Return the tokens of each image's candidates and references."""
    flat = [Caption(image, text) for image, texts in candidates.items() for text in texts]
    words, reference_words = tokenize_all(flat, references, language)
    rest = iter(words)
    return [[next(rest) for _ in texts] for texts in candidates.values()], reference_words


def candidate_ciders(
    candidates: Mapping[str, Sequence[str]], references: Mapping[str, Sequence[str]], language: str
) -> list[Array]:
    """CIDEr of each candidate of each image alone, as the stage ``score`` gives it for the same images."""
    words, reference_words = tokenize_candidates(candidates, references, language)
    return CandidateScores(words, reference_words).per_candidate
