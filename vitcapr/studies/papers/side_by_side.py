"""Score tables that compare the paper, this build and the literature."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from vitcapr.formats.tables import NOTHING, Cell, Notes, Table
from vitcapr.formats.tables import row as table_row
from vitcapr.metrics.labels import COLUMNS
from vitcapr.studies.papers.numbers import Number, Published, PublishedRow, PublishedTable

BUILD = "this build"
BEFORE_TRAINING = ", before training"

_BLEU = ("bleu_1", "bleu_2", "bleu_3", "bleu_4")
_FOLDS, _CHANCE, _BEFORE = "_1k", "_chance", "_before"
"""Ends of metric names; such scores are a row of their own."""


class ScoreRange(NamedTuple):
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class BuildRow:
    """One system of this build on one split: all its scores.

    Attributes:
        key: ``model/decoding``, or the retriever's name; empty for chance.
        variant: what sets the row apart from the system's plain scores; empty for these.
    """

    experiment: str
    dataset: str
    split: str
    key: str
    scores: Mapping[str, ScoreRange]
    protocols: Mapping[str, str]
    """Of each metric."""
    variant: str = ""


def build_rows(summary: pd.DataFrame) -> list[BuildRow]:
    """The rows of a summary by system, in its order; mean BLEU is added, folds and chance come apart."""
    rows = []
    keys = ["experiment", "dataset", "split", "model", "decoding"]
    for (experiment, dataset, split, model, decoding), part in summary.groupby(keys, sort=False):
        scores, protocols = {}, {}
        for record in part.to_dict("records"):
            scores[str(record["metric"])] = ScoreRange(record["value"], record["low"], record["high"])
            protocols[str(record["metric"])] = str(record["protocol"])
        if all(name in scores for name in _BLEU):
            mean = sum(scores[name].value for name in _BLEU) / len(_BLEU)
            scores["bleu_mean"] = ScoreRange(mean, float("nan"), float("nan"))
            protocols["bleu_mean"] = protocols["bleu_4"]
        key = f"{model}/{decoding}" if decoding else str(model)
        row = BuildRow(str(experiment), str(dataset), str(split), key, scores, protocols)
        rows.append(row)
        if folds := _ending(scores, _FOLDS):
            rows.append(replace(row, scores=folds, variant=", mean of five folds of 1,000 images"))
        if before := _ending(scores, _BEFORE):
            known = {name: protocols[f"{name}{_BEFORE}"] for name in before}
            rows.append(replace(row, scores=before, protocols=known, variant=BEFORE_TRAINING))
        chance = replace(row, key="", scores=_ending(scores, _CHANCE), variant="chance, in the same pool")
        if chance.scores and place(chance) not in map(place, rows):
            rows.append(chance)
    return rows


def _ending(scores: Mapping[str, ScoreRange], ending: str) -> dict[str, ScoreRange]:
    return {name.removesuffix(ending): score for name, score in scores.items() if name.endswith(ending)}


def seed_average(builds: Sequence[BuildRow], systems: Mapping[str, str]) -> list[BuildRow]:
    """The rows with one for each system of several trainings: the means, with a standard deviation each way.

    It stands where the first of them stood. A score that one of them lacks is left out.

    Args:
        systems: of which system a model is a training, by the model's name; others are left as they are.
    """
    groups: dict[tuple[str, str, str, str, str], list[BuildRow]] = {}
    for row in builds:
        place = row.experiment, row.dataset, row.split, systems.get(row.key, row.key), row.variant
        groups.setdefault(place, []).append(row)
    merged = []
    for (*_, key, variant), rows in groups.items():
        if len(rows) == 1:
            merged.append(replace(rows[0], key=key))
            continue
        shared = [name for name in rows[0].scores if all(name in row.scores for row in rows)]
        scores = {name: _mean_score([row.scores[name].value for row in rows]) for name in shared}
        spread = f"mean of {len(rows)} seeds, one standard deviation each way"
        protocols = {
            name: _without_interval(rows[0].protocols[name], spread) for name in shared if name in rows[0].protocols
        }
        merged.append(
            replace(
                rows[0], key=key, scores=scores, protocols=protocols, variant=f", mean of {len(rows)} seeds{variant}"
            )
        )
    return merged


def _without_interval(protocol: str, instead: str) -> str:
    """The protocol without its part ``ci:``, and ``instead`` at its end."""
    return "|".join([*(part for part in protocol.split("|") if not part.startswith("ci:")), instead])


def _mean_score(values: Sequence[float]) -> ScoreRange:
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    return ScoreRange(mean, mean - spread, mean + spread)


def side_by_side(name: str, published: Published, builds: Sequence[BuildRow]) -> Table:
    """One table of scores: each row of the paper with this build's under it, further rows of this build, then the
    literature's."""
    asked = published.tables[name]
    notes = Notes()
    eligible = [row for row in builds if row.scores.keys() & set(asked.metrics)]
    here = [row for row in eligible if row.dataset == asked.dataset]
    shown = eligible if asked.every_dataset or asked.any_data_stands_in else here
    standing = shown if asked.any_data_stands_in else here
    if asked.only_named:
        named = {row.build for row in asked.rows}
        shown = [row for row in shown if row.key in named or not row.key]
    names = SystemNames(shown, asked.dataset)

    lines, placed = [], []
    for row in asked.rows:
        if row.source != "paper":
            continue
        lines.append(published_line(row, asked.metrics, published.notes, notes))
        partners = [
            build for build in standing if build.key and build.key == row.build and row.split in ("", build.split)
        ]
        placed += partners
        lines += [build_line(build, names, asked.metrics) for build in partners]
        if row.build and not partners:
            lines.append(table_row(BUILD, _system(row.build), *[NOTHING] * (len(asked.metrics) + 1)))
    others = sorted((build for build in shown if build not in placed), key=lambda build: not build.key)
    lines += [build_line(build, names, asked.metrics) for build in others]
    lines += [published_line(row, asked.metrics, published.notes, notes) for row in asked.rows if row.source != "paper"]
    return Table(
        asked.title,
        headings(asked.metrics),
        tuple(lines),
        align=f"ll{'r' * len(asked.metrics)}l",
        caption=caption(asked, shown),
        notes=tuple(notes.written),
        name=name,
    )


def headings(metrics: Sequence[str]) -> tuple[str, ...]:
    """Of the cells of :func:`published_line` and :func:`build_line`."""
    return "source", "system", *(COLUMNS[metric].label for metric in metrics), "from"


def caption(asked: PublishedTable, shown: Iterable[BuildRow]) -> str:
    """The caption that explains the numbers of the table, with the protocols of this build."""
    unscaled = "bits" if any("information" in metric for metric in asked.metrics) else "lengths and ranks"
    parts = [f"Scores times 100, {unscaled} as they are; in parentheses 95 % intervals, by resampling images."]
    protocols = dict.fromkeys(
        row.protocols[metric] for row in shown for metric in row.protocols if metric in asked.metrics
    )
    if protocols:
        parts.append(f"Protocol of this build: {'; '.join(protocols)}.")
        elsewhere = sorted({row.dataset for row in shown} - {asked.dataset})
        if asked.any_data_stands_in and elsewhere:
            parts.append(
                f"The paper's rows are of {asked.dataset}; this build's are of {', '.join(elsewhere)} where they say "
                "so: another pool and other pictures. Compare the order of the systems, not their level."
            )
    else:
        parts.append(f"This build has no run on {asked.dataset} here.")
    parts.append("The paper's and the literature's protocols are in the notes, so far as they are known.")
    return " ".join(parts)


class SystemNames:
    """A system's name, and as much of its place as it takes to tell the rows of one table apart."""

    def __init__(self, rows: Sequence[BuildRow], dataset: str) -> None:
        self._shown = [
            part
            for part in ("experiment", "dataset", "split")
            if len({getattr(row, part) for row in rows}) > 1
            or (part == "dataset" and any(row.dataset != dataset for row in rows))
        ]

    def of(self, row: BuildRow) -> str:
        place = ", ".join(str(getattr(row, part)) for part in self._shown)
        return _system(row.key) + row.variant + (f" ({place})" if place else "")


def _system(key: str) -> str:
    """A retriever may be called "paper": what it is stands before its name."""
    return key if "/" in key or not key else f"retriever {key}"


def place(row: BuildRow) -> tuple[str, str, str, str, str]:
    """What no two rows share."""
    return row.experiment, row.dataset, row.split, row.key, row.variant


def published_line(
    row: PublishedRow, metrics: Sequence[str], words: Mapping[str, str], notes: Notes
) -> tuple[Cell, ...]:
    """A row's cells: source, system, the metrics, and where it is from."""

    def marks(keys: Iterable[str]) -> tuple[int, ...]:
        return tuple(notes.number(words[key]) for key in keys)

    def cell(number: Number | None) -> Cell:
        return Cell(NOTHING) if number is None else Cell(number.shown, notes=marks(number.notes))

    system = Cell(row.system, notes=marks(row.notes))
    return table_row(row.source, system, *(cell(row.values.get(metric)) for metric in metrics), row.origin)


def build_line(row: BuildRow, names: SystemNames, metrics: Sequence[str]) -> tuple[Cell, ...]:
    """As :func:`published_line`."""
    cells = (
        COLUMNS[metric].cell(row.scores[metric]._asdict()) if metric in row.scores else NOTHING for metric in metrics
    )
    return table_row(BUILD, names.of(row), *cells, f"{row.split} split")
