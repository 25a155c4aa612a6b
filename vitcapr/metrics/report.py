"""The metrics file: scores as fractions, with their intervals and one line that says how they were made."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import read_json, write_json
from vitcapr.metrics.bootstrap import Measure, interval

FORMAT = "vitcapr-metrics-1"
_DECIMALS = 8
"""Beyond these, the order of a sum may show."""

Score = dict[str, float | int | None]
"""``value``, ``low``, ``high``, ``n``; None where there is no value or no interval."""


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


def write_metrics(
    path: Path, *, dataset: str, split: str, model: str, decoding: str, metrics: Mapping[str, Score], protocol: str
) -> None:
    write_json(
        path,
        {
            "format": FORMAT,
            "dataset": dataset,
            "split": split,
            "model": model,
            "decoding": decoding,
            "metrics": dict(metrics),
            "protocol": protocol,
        },
    )


def read_metrics(path: Path) -> dict[str, Any]:
    """Raises:
    UserError: the file is missing or is not a metrics file.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(f"not a metrics file of format {FORMAT}", where=path, remedy="score the captions again")
    return content


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(value, _DECIMALS)
