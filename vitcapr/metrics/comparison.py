"""Compares two scored systems on the same images: the differences of all scores, with intervals and tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.formats.scores import read_metrics, read_per_image
from vitcapr.metrics.bootstrap import NOT_TESTED, Measure, compare, interval_protocol, mean_measure, verdict
from vitcapr.metrics.labels import in_groups
from vitcapr.metrics.scoring import caption_metrics

_P_VALUE = "p:exchange,two-sided"
_DECIMALS = 8
_SAME = ("tok", "refs", "images", "split", "lang")
"""Parts of the protocol that both systems must share."""


@dataclass(frozen=True)
class Scored:
    """The output of ``score`` for a system.

    Attributes:
        report: its metrics.json.
        images: the image ids, (N,).
        captions: the caption of each.
        measures: the scores that are made of statistics of each image, by name.
    """

    report: dict[str, Any]
    images: list[str]
    captions: list[str]
    measures: dict[str, Measure]

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.report["model"], self.report["decoding"])))


def read_scored(metrics: Path, per_image: Path) -> Scored:
    """Raises:
    UserError: a file is missing, or the two are not of one run of ``score``.
    """
    report = read_metrics(metrics)
    try:
        scored = scored_system(report, read_per_image(per_image))
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(
            f"not a table of scores by image: {error}", where=per_image, remedy="score the captions again"
        ) from error
    for name, measure in scored.measures.items():
        value = report["metrics"][name]["value"]
        if value is None or not abs(measure.value - value) <= 1e-6:
            raise UserError(f"{name} is not that of {metrics}", where=per_image, remedy="give the files of one scoring")
    return scored


def scored_system(report: Mapping[str, Any], table: pd.DataFrame) -> Scored:
    """A scored system from the content of its metrics.json and its scores by image."""
    measures = {name: _measure(table, name) for name in report["metrics"] if name in table.columns}
    return Scored(dict(report), table["image_id"].tolist(), table["caption"].tolist(), measures)


def compare_systems(before: Scored, after: Scored, samples: int, seed: int) -> dict[str, Any]:
    """Every score that both have, and the difference after - before: the content of ``comparison.json``.

    ``verdict`` is ``higher`` or ``lower`` where the 95 % interval of the difference leaves out 0, and otherwise
    ``no difference shown``; ``not tested`` where resampling images would distort the score, or ``samples`` is 0.
    The intervals are of one score each, not corrected for their number.
    """
    _check_comparable(before, after)
    rows = {}
    for name in (column.name for column in in_groups("references", "grounding", "language")):
        values = [system.report["metrics"].get(name, {}).get("value") for system in (before, after)]
        if None in values:
            continue
        found: dict[str, Any] = {"before": values[0], "after": values[1]}
        found["difference"] = round(values[1] - values[0], _DECIMALS)
        found |= {"low": None, "high": None, "p_value": None, "verdict": NOT_TESTED}
        if samples and name in before.measures and name in after.measures:
            tested = compare(after.measures[name], before.measures[name], samples, seed)
            found |= {key: round(getattr(tested, key), _DECIMALS) for key in ("low", "high", "p_value")}
            found["verdict"] = verdict(found["low"], found["high"])
        rows[name] = found
    return {
        "dataset": before.report["dataset"],
        "split": before.report["split"],
        "images": len(before.images),
        "changed": sum(a != b for a, b in zip(before.captions, after.captions, strict=True)),
        "before": _identity(before),
        "after": _identity(after),
        "metrics": rows,
        "protocol": "|".join(["paired", *interval_protocol(samples, seed), *([_P_VALUE] if samples else [])]),
    }


def _measure(table: pd.DataFrame, name: str) -> Measure:
    corpus = {score: how for metric in caption_metrics().values() for score, how in metric.corpus.items()}
    if name not in corpus:
        return mean_measure(table[name].to_numpy())
    column, aggregate = corpus[name]
    return Measure(np.stack(table[column].tolist()), aggregate)


def _check_comparable(before: Scored, after: Scored) -> None:
    what = None
    if before.report["dataset"] != after.report["dataset"]:
        what = f"one system was scored on {before.report['dataset']} and the other on {after.report['dataset']}"
    elif _shared(before) != _shared(after):
        what = f"one system was scored as {'|'.join(_shared(before))} and the other as {'|'.join(_shared(after))}"
    elif before.images != after.images:
        what = "the systems were scored on different images"
    if what is not None:
        raise UserError(what, where=f"{before.name}; {after.name}", remedy="score both on one split of one data set")


def _shared(system: Scored) -> list[str]:
    return [part for part in system.report["protocol"].split("|") if part.partition(":")[0] in _SAME]


def _identity(system: Scored) -> dict[str, str]:
    return {key: system.report[key] for key in ("model", "decoding", "protocol")}
