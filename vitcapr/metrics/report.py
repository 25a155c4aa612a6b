"""Scores in the form of a metrics file: rounded, with their intervals."""

import math

from vitcapr.formats.scores import Score
from vitcapr.metrics.bootstrap import Measure, interval

_DECIMALS = 8
"""Beyond these, the order of a sum may show."""


def score_of(measure: Measure, samples: int, seed: int) -> Score:
    """A measure with its 95 % interval over the images."""
    bounds = interval(measure, samples, seed)
    low, high = (None, None) if bounds is None else (_rounded(bounds.low), _rounded(bounds.high))
    count = len(measure.statistics) if measure.n is None else measure.n
    return {"value": _rounded(measure.value), "low": low, "high": high, "n": count}


def interval_protocol(samples: int, seed: int) -> list[str]:
    """How the intervals of :func:`score_of` are drawn, as a part of a protocol; no part where there are none."""
    return [f"ci:95,samples={samples},seed={seed}"] if samples else []


def plain_score(value: float, n: int) -> Score:
    """A number that resampling images would distort, such as a count of different words: no interval."""
    return {"value": _rounded(value), "low": None, "high": None, "n": n}


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(value, _DECIMALS)
