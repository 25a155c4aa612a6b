"""BLEU, as COCO's evaluation has it."""

from collections.abc import Sequence

import numpy as np
from pycocoevalcap.bleu.bleu_scorer import cook_refs, cook_test

from vitcapr.metrics.bootstrap import Array, Measure
from vitcapr.metrics.caption_metric import CaptionMetric

_ORDERS = (1, 2, 3, 4)
_TINY, _SMALL = 1e-15, 1e-9
"""The small constants of the COCO evaluation that avoid division by zero. They are no smoothing: without a match,
BLEU-4 stays below 0.001."""


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
    return {f"bleu_{order}": Measure(statistics, _BleuOf(order)) for order in _ORDERS}


class _BleuOf:
    """BLEU of one order from sums (..., 10): matches and n-grams of orders 1 to 4, words, reference words."""

    def __init__(self, order: int) -> None:
        self.order = order

    def __call__(self, sums: Array) -> Array:
        precisions = (sums[..., : self.order] + _TINY) / (sums[..., 4 : 4 + self.order] + _SMALL)
        share = (sums[..., 8] + _TINY) / (sums[..., 9] + _SMALL)
        brevity = np.exp(np.minimum(0.0, 1 - 1 / share))
        return np.asarray(np.prod(precisions, axis=-1) ** (1 / self.order) * brevity)


METRIC = CaptionMetric(
    measure=lambda captions: bleu(captions.tokenised, captions.tokenised_references),
    protocol="bleu:corpus,closest",
    corpus={f"bleu_{order}": ("bleu_statistics", _BleuOf(order)) for order in _ORDERS},
)
