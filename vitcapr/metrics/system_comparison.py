"""Compares scored systems on the same images, and models that each lack one part of another: differences of scores."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from vitcapr.errors import UserError
from vitcapr.formats.claims import Claim
from vitcapr.formats.scores import DIFFERENCES, RankFile, read_metrics, read_per_image
from vitcapr.metrics.bootstrap import (
    LEVEL,
    NOT_SHOWN,
    NOT_TESTED,
    Measure,
    compare,
    interval_protocol,
    mean_measure,
    ratio_measure,
    verdict,
)
from vitcapr.metrics.caption_metric import ORACLE
from vitcapr.metrics.labels import COLUMNS, GROUPS, in_groups
from vitcapr.metrics.retrieval_measures import file_measures
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


def compared_measures(before: Measure, after: Measure, samples: int, seed: int) -> dict[str, Any]:
    """Return the values of a score for two systems, and the tested difference after - before."""
    values = {side: float(one.value) for side, one in (("before", before), ("after", after))}
    difference = round(values["after"] - values["before"], _DECIMALS)
    return {**values, "difference": difference, **_tested(before, after, samples, seed)}


def _tested(before: Measure | None, after: Measure | None, samples: int, seed: int) -> dict[str, Any]:
    if not samples or before is None or after is None:
        return {"low": None, "high": None, "p_value": None, "verdict": NOT_TESTED}
    tested = compare(after, before, samples, seed)
    row = {key: round(getattr(tested, key), _DECIMALS) for key in ("low", "high", "p_value")}
    return {**row, "verdict": verdict(row["low"], row["high"])}


def claim_measures(claims: Iterable[Sequence[Claim]], kinds: Iterable[str] = ()) -> dict[str, Measure]:
    """Score the checked claims of each caption.

    ``claims_true``: the share of captions that name an object and make no wrong claim. ``claims_objects`` and so on:
    the share of the claims of a kind that are right, NaN for one of ``kinds`` that no caption has.
    """
    captions = list(claims)
    kinds = dict.fromkeys([*kinds, *(claim.kind for caption in captions for claim in caption)])

    def by_kind(kind: str) -> Measure:
        own = [[claim.right for claim in caption if claim.kind == kind] for caption in captions]
        return ratio_measure([sum(right) for right in own], [len(right) for right in own])

    true = [all(c.right for c in caption) and any(c.kind == "objects" for c in caption) for caption in captions]
    return {"claims_true": mean_measure(true), **{f"claims_{kind}": by_kind(kind) for kind in kinds}}


def with_claims(system: Scored, claims: Mapping[str, Sequence[Claim]]) -> Scored:
    """Add the scores of its claims to a system.

    Raises:
        UserError: the claims are of other images.
    """
    if claims.keys() != system.captions.keys():
        raise UserError("the claims are of other images than the scores", remedy="check the claims of these captions")
    measures = claim_measures(claims[image] for image in system.captions)
    scores = {name: {"value": measure.value} for name, measure in measures.items()}
    report = {**system.report, "metrics": system.report["metrics"] | scores}
    return system._replace(report=report, measures=system.measures | measures)


def compare_systems(before: Scored, after: Scored, samples: int, seed: int) -> dict[str, Any]:
    """Return every score that both have, and the difference after - before: the content of ``comparison.json``.

    ``verdict`` is ``higher`` or ``lower`` where the 95 % interval of the difference leaves out 0, and otherwise
    ``no difference shown``; ``not tested`` where resampling images would distort the score, or ``samples`` is 0.
    The intervals are of one score each, not corrected for their number.
    """
    _check_comparable(before, after)
    rows = {}
    for name in (column.name for column in in_groups(*GROUPS)):
        values = [system.report["metrics"].get(name, {}).get("value") for system in (before, after)]
        if None in values:
            continue
        row = {"before": values[0], "after": values[1], "difference": round(values[1] - values[0], _DECIMALS)}
        tested = before.measures.get(name), after.measures.get(name)
        rows[name] = row | _tested(*tested, samples, seed)
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


def paired_differences(
    comparisons: Iterable[Mapping[str, Any]], ranks: Mapping[str, Path], samples: int, seed: int
) -> pd.DataFrame:
    """Compute the paired differences of the systems of a split in their main scores, corrected for their number.

    Args:
        comparisons: contents of ``comparison.json``; those with an oracle are left out.
        ranks: ``ranks.npz`` by retrieval model; each model is compared with the first that ranks the same captions.

    Returns:
        :data:`DIFFERENCES`, a row a score and pair. ``adjusted`` is the p-value after
        Benjamini and Hochberg (1995) over all rows; ``verdict`` needs it below 0.05 and an interval that leaves out 0.
    """
    rows = []
    for one in comparisons:
        sides = [one[side] for side in ("before", "after")]
        if not any(side["protocol"].startswith(ORACLE) for side in sides):
            names = [", ".join(filter(None, (side["model"], side["decoding"]))) for side in sides]
            for metric, row in one["metrics"].items():
                if COLUMNS[metric].main and row["p_value"] is not None:
                    rows.append((*names, metric, *(row[k] for k in ("before", "after", *DIFFERENCES[5:9]))))
    first = dict[bytes, str]()
    for name, path in ranks.items() if samples else ():
        file = RankFile.read(path)
        base = first.setdefault(file.image_row.tobytes() + file.caption_row.tobytes(), name)
        if name != base:
            rows += [row for row in _recall_rows(ranks[base], path, base, name, samples, seed) if COLUMNS[row[2]].main]
    table = pd.DataFrame(rows, columns=list(DIFFERENCES[:9]))
    table["adjusted"] = false_discovery_control(table["p_value"].astype(float)) if rows else []
    shown = table["adjusted"].astype(float) < 1 - LEVEL
    table["verdict"] = [
        verdict(float(low), float(high)) if certain else NOT_SHOWN
        for low, high, certain in zip(table["low"], table["high"], shown, strict=True)
    ]
    return table


def _recall_rows(one: Path, other: Path, before: str, after: str, samples: int, seed: int) -> Iterator[tuple[Any, ...]]:
    """``before, after, metric``, both scores and their comparison, for each recall of two files of ranks."""
    first = RankFile.read(one)
    of_before, of_after = map(file_measures, (first, RankFile.read(other, first)))
    for metric in _RETRIEVAL:
        tested = compare(of_after[metric], of_before[metric], samples, seed)
        yield before, after, metric, of_before[metric].value, of_after[metric].value, *tested


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
    rows = list[tuple[Any, ...]]()
    for split in dict.fromkeys(split for _, split in files):
        for whole, model in pairs:
            for name in (whole, model):
                if (name, split) not in files:
                    what = f"there are no ranks of '{name}' on the split '{split}'"
                    raise UserError(what, remedy="give its ranks.npz")
            paths = files[whole, split], files[model, split]
            rows += [(split, *row) for row in _recall_rows(*paths, whole, model, samples, seed)]
    return pd.DataFrame(rows, columns=_ABLATION)
