"""BLEU, METEOR, ROUGE-L and CIDEr of one caption an image against its references, as COCO's evaluation has them."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from pycocoevalcap.bleu.bleu_scorer import cook_refs, cook_test
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from vitcapr.metrics.bootstrap import Array, Measure, mean_measure
from vitcapr.metrics.java import MeteorResult

_TINY, _SMALL = 1e-15, 1e-9
"""COCO's guards against a division by zero. They do not smooth: without a match, BLEU-4 stays below 0.001."""


def bleu(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, Measure]:
    """Corpus BLEU-1 to BLEU-4 of tokenised captions: closest reference length, no smoothing.

    Papineni et al., BLEU: a Method for Automatic Evaluation of Machine Translation (2002).
    """
    rows = []
    for candidate, others in zip(candidates, references, strict=True):
        counts = cook_test(candidate, cook_refs(others))
        length = counts["testlen"]
        closest = min((abs(other - length), other) for other in counts["reflen"])[1]
        rows.append([*counts["correct"], *counts["guess"], length, closest])
    statistics = np.array(rows, dtype=np.float64)
    return {f"bleu_{order}": Measure(statistics, _BleuOf(order)) for order in (1, 2, 3, 4)}


class _BleuOf:
    """BLEU of one order from sums (..., 10): matches and n-grams of orders 1 to 4, words, reference words."""

    def __init__(self, order: int) -> None:
        self.order = order

    def __call__(self, sums: Array) -> Array:
        precisions = (sums[..., : self.order] + _TINY) / (sums[..., 4 : 4 + self.order] + _SMALL)
        share = (sums[..., 8] + _TINY) / (sums[..., 9] + _SMALL)
        brevity = np.exp(np.minimum(0.0, 1 - 1 / share))
        return np.asarray(np.prod(precisions, axis=-1) ** (1 / self.order) * brevity)


def meteor(result: MeteorResult) -> Measure:
    """METEOR 1.5 from what its jar counted in each segment."""
    statistics = np.array(result.statistics, dtype=np.float64)
    length, other_length, chunks, matched, other_matched = statistics[:, [0, 1, 20, 21, 22]].T
    # A caption that is a reference word for word is one chunk, which METEOR does not count.
    statistics[(matched == length) & (other_matched == other_length) & (chunks == 1), 20] = 0
    return Measure(statistics, meteor_of)


def meteor_of(sums: Array) -> Array:
    """The score from METEOR's statistics (..., 23) with its parameters for English (task ``rank``).

    Denkowski and Lavie, Meteor Universal (2014), equations 1 to 5: alpha 0.85, beta 0.20, gamma 0.60,
    delta 0.75, matchers weighed 1.0 (exact), 0.6 (stem), 0.8 (synonym), 0.6 (paraphrase). The statistics are
    words and function words of candidate and reference; for each matcher the content words of the candidate
    and the reference and the function words of both; chunks; matched words of both.
    """
    alpha, beta, gamma, delta = 0.85, 0.20, 0.60, 0.75
    weights = np.array([1.0, 0.6, 0.8, 0.6])
    length, other_length, function, other_function = np.moveaxis(sums[..., :4], -1, 0)
    content_matches, other_content, function_matches, other_functions = np.moveaxis(
        sums[..., 4:20].reshape(*sums.shape[:-1], 4, 4) * weights[:, None], -1, 0
    )
    chunks, matched, other_matched = np.moveaxis(sums[..., 20:], -1, 0)

    def weighed(content: Array, of_function: Array, words: Array, function_words: Array) -> Array:
        most = delta * (words - function_words) + (1 - delta) * function_words
        found = delta * content.sum(axis=-1) + (1 - delta) * of_function.sum(axis=-1)
        return _divide(found, most)

    precision = weighed(content_matches, function_matches, length, function)
    recall = weighed(other_content, other_functions, other_length, other_function)
    f_mean = _divide(precision * recall, alpha * precision + (1 - alpha) * recall)
    fragmentation = _divide(chunks, (matched + other_matched) / 2)
    return np.asarray(f_mean * (1 - gamma * fragmentation**beta))


def _divide(numerator: Array, denominator: Array) -> Array:
    """Zero where there is nothing to divide by, as METEOR has it."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=denominator != 0)


def rouge_l(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Measure:
    """The mean over images of ROUGE-L with beta 1.2 of tokenised captions (Lin, 2004)."""
    scorer = Rouge()
    return mean_measure([scorer.calc_score([c], list(r)) for c, r in zip(candidates, references, strict=True)])


def cider(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Measure:
    """The mean over images of CIDEr-D of tokenised captions, document frequencies from these references.

    Vedantam et al., CIDEr: Consensus-based Image Description Evaluation (2015), as COCO's evaluation computes it:
    1.0 is what papers print as 100. One image alone scores 0; numbers of images are comparable only if equal.
    """
    _, scores = Cider().compute_score(
        {number: list(others) for number, others in enumerate(references)},
        {number: [candidate] for number, candidate in enumerate(candidates)},
    )
    assert not math.isnan(float(np.sum(scores)))
    return mean_measure(scores)


CORPUS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    **{f"bleu_{order}": ("bleu_statistics", _BleuOf(order)) for order in (1, 2, 3, 4)},
    "meteor": ("meteor_statistics", meteor_of),
}
"""Scores of a corpus that are no mean over its images: where their statistics are kept, how they make the score."""


def by_statistics(measures: Mapping[str, Measure]) -> dict[str, Measure]:
    """A measure for each kind of statistics that the corpus scores among ``measures`` are made of, by its column."""
    return {CORPUS[name][0]: measure for name, measure in measures.items() if name in CORPUS}
