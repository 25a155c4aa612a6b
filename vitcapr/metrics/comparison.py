"""Compares scored systems on the same images, and models that each lack one part of another: differences of scores."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.formats.scores import RankFile, read_metrics, read_per_image
from vitcapr.metrics.bootstrap import NOT_TESTED, Measure, compare, interval_protocol, mean_measure, verdict
from vitcapr.metrics.labels import in_groups
from vitcapr.metrics.retrieval import file_measures
from vitcapr.metrics.scoring import caption_metrics

_P_VALUE = "p:exchange,two-sided"
_DECIMALS = 8
_SAME = ("tok", "refs", "images", "split", "lang")
"""Parts of the protocol that both systems must share."""
_RETRIEVAL = ("i2t_recall_1", "i2t_recall_10", "t2i_recall_1", "t2i_recall_10", "rsum")
_ABLATION = ["split", "whole", "model", "metric", "of_whole", "of_model", "difference", "low", "high", "p_value"]


class Scored(NamedTuple):
    """The output of ``score`` for a system.

    Attributes:
        report: its metrics.json.
        captions: the caption of each image, by id.
        measures: the scores that are made of statistics of each image, by name.
    """

    report: Mapping[str, Any]
    captions: dict[str, str]
    measures: dict[str, Measure]


def read_scored(metrics: Path, per_image: Path) -> Scored:
    """Read the scores of a run of ``score``.

    Raises:
        UserError: a file is missing, or the two are not of one run of ``score``.
    """
    report = read_metrics(metrics)
    scored = scored_system(report, read_per_image(per_image))
    for name, measure in scored.measures.items():
        value = report["metrics"][name]["value"]
        if not np.isclose(measure.value, np.nan if value is None else value, rtol=0, atol=1e-6, equal_nan=True):
            raise UserError(f"{name} is not that of {metrics}", where=per_image, remedy="give the files of one scoring")
    return scored


def scored_system(report: Mapping[str, Any], table: pd.DataFrame) -> Scored:
    """Return a scored system from the content of its metrics.json and its scores by image."""
    corpus = {score: how for metric in caption_metrics().values() for score, how in metric.corpus.items()}
    measures = {}
    for name in (name for name in report["metrics"] if name in table.columns):
        if name in corpus:
            column, aggregate = corpus[name]
            measures[name] = Measure(np.stack(table[column].tolist()), aggregate)
        else:
            measures[name] = mean_measure(table[name].to_numpy())
    return Scored(report, dict(zip(table["image_id"], table["caption"], strict=True)), measures)


def compare_systems(before: Scored, after: Scored, samples: int, seed: int) -> dict[str, Any]:
    """Return every score that both have, and the difference after - before: the content of ``comparison.json``.

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
        row: dict[str, Any] = {"before": values[0], "after": values[1]}
        row["difference"] = round(values[1] - values[0], _DECIMALS)
        row |= {"low": None, "high": None, "p_value": None, "verdict": NOT_TESTED}
        if samples and name in before.measures and name in after.measures:
            tested = compare(after.measures[name], before.measures[name], samples, seed)
            row |= {key: round(getattr(tested, key), _DECIMALS) for key in ("low", "high", "p_value")}
            row["verdict"] = verdict(row["low"], row["high"])
        rows[name] = row
    return {
        "dataset": before.report["dataset"],
        "split": before.report["split"],
        "images": len(before.captions),
        "changed": sum(before.captions[image] != text for image, text in after.captions.items()),
        **{
            side: {key: system.report[key] for key in ("model", "decoding", "protocol")}
            for side, system in (("before", before), ("after", after))
        },
        "metrics": rows,
        "protocol": "|".join(["paired", *interval_protocol(samples, seed), *([_P_VALUE] if samples else [])]),
    }


def _check_comparable(before: Scored, after: Scored) -> None:
    datasets, protocols = ([system.report[key] for system in (before, after)] for key in ("dataset", "protocol"))
    shared = [
        "|".join(part for part in protocol.split("|") if part.partition(":")[0] in _SAME) for protocol in protocols
    ]
    what = None
    if datasets[0] != datasets[1]:
        what = f"one system was scored on {datasets[0]} and the other on {datasets[1]}"
    elif shared[0] != shared[1]:
        what = f"one system was scored as {shared[0]} and the other as {shared[1]}"
    elif list(before.captions) != list(after.captions):
        what = "the systems were scored on different images"
    if what is not None:
        names = (", ".join(filter(None, (one.report["model"], one.report["decoding"]))) for one in (before, after))
        raise UserError(what, where="; ".join(names), remedy="score both on one split of one data set")


def ablation_numbers(
    files: Mapping[tuple[str, str], Path], pairs: Sequence[tuple[str, str]], samples: int, seed: int
) -> pd.DataFrame:
    """``split, whole, model, metric, of_whole, of_model, difference, low, high, p_value``, a row a difference.

    Args:
        files: ``ranks.npz`` by model and split.
        pairs: the whole model and the one that lacks something; the difference is the second minus the first.

    Raises:
        UserError: a file is missing, or two models were scored on different images or captions.
    """
    rows = []
    for split in dict.fromkeys(split for _, split in files):
        for whole, model in pairs:
            for name in (whole, model):
                if (name, split) not in files:
                    what = f"there are no ranks of '{name}' on the split '{split}'"
                    raise UserError(what, remedy="give its ranks.npz")
            complete = RankFile.read(files[whole, split])
            of_whole, of_model = map(file_measures, (complete, RankFile.read(files[model, split], complete)))
            for metric in _RETRIEVAL:
                tested = compare(of_model[metric], of_whole[metric], samples, seed)
                rows.append((split, whole, model, metric, of_whole[metric].value, of_model[metric].value, *tested))
    return pd.DataFrame(rows, columns=_ABLATION)
