"""Score tables that compare the paper, this build and the literature."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from vitcapr.extensions.papers.protocols import in_words
from vitcapr.extensions.papers.published import Number, Published, PublishedRow, PublishedTable
from vitcapr.formats.tables import NOTHING, Cell, Notes, Table
from vitcapr.formats.tables import row as table_row
from vitcapr.metrics.labels import COLUMNS

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
    """All scores of one system of this build on one split of its data set.

    Attributes:
        key: ``model/decoding``, or the retriever's name; empty for chance.
        variant: what sets the row apart from the system's plain scores; empty for these.
    """

    dataset: str
    split: str
    key: str
    scores: Mapping[str, ScoreRange]
    protocols: Mapping[str, str]
    """Protocol of each metric."""
    variant: str = ""


def build_rows(summary: pd.DataFrame) -> list[BuildRow]:
    """Return the rows of an experiment's summary by system, in its order.

    Mean BLEU is added, and folds and chance become rows of their own.
    """
    rows: list[BuildRow] = []
    for (dataset, split, model, decoding), part in summary.groupby(
        ["dataset", "split", "model", "decoding"], sort=False
    ):
        scores, protocols = {}, {}
        for record in part.to_dict("records"):
            scores[str(record["metric"])] = ScoreRange(record["value"], record["low"], record["high"])
            protocols[str(record["metric"])] = str(record["protocol"])
        if all(name in scores for name in _BLEU):
            mean = sum(scores[name].value for name in _BLEU) / len(_BLEU)
            scores["bleu_mean"] = ScoreRange(mean, float("nan"), float("nan"))
            protocols["bleu_mean"] = protocols["bleu_4"]
        key = f"{model}/{decoding}" if decoding else str(model)
        row = BuildRow(str(dataset), str(split), key, scores, protocols)
        rows.append(row)
        if folds := _ending(scores, _FOLDS):
            rows.append(replace(row, scores=folds, variant=", mean of five folds of 1,000 images"))
        if before := _ending(scores, _BEFORE):
            known = {name: protocols[f"{name}{_BEFORE}"] for name in before}
            rows.append(replace(row, scores=before, protocols=known, variant=BEFORE_TRAINING))
        chance = _ending(scores, _CHANCE)
        if chance and ("", split) not in [(one.key, one.split) for one in rows]:
            rows.append(replace(row, key="", scores=chance, variant="chance, in the same pool"))
    return rows


def _ending(scores: Mapping[str, ScoreRange], ending: str) -> dict[str, ScoreRange]:
    return {name.removesuffix(ending): score for name, score in scores.items() if name.endswith(ending)}


def seed_average(builds: Sequence[BuildRow], systems: Mapping[str, str]) -> list[BuildRow]:
    """Return the rows with one for each system of several trainings: the means, with a standard deviation each way.

    It stands where the first of them stood. A score that one of them lacks is left out.

    Args:
        systems: of which system a model is a training, by the model's name; others are left as they are.
    """
    groups: dict[tuple[str, str, str], list[BuildRow]] = {}
    for row in builds:
        groups.setdefault((row.split, systems.get(row.key, row.key), row.variant), []).append(row)
    merged = []
    for (_, key, variant), rows in groups.items():
        row = replace(rows[0], key=key)
        if len(rows) > 1:
            shared = [name for name in row.scores if all(name in other.scores for other in rows)]
            scores, protocols = {}, {}
            for name in shared:
                values = [other.scores[name].value for other in rows]
                mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
                scores[name] = ScoreRange(mean, mean - spread, mean + spread)
                if name in row.protocols:
                    parts = [part for part in row.protocols[name].split("|") if not part.startswith("ci:")]
                    protocols[name] = "|".join([*parts, f"mean of {len(rows)} seeds, one standard deviation each way"])
            variant = f", mean of {len(rows)} seeds{variant}"
            row = replace(row, scores=scores, protocols=protocols, variant=variant)
        merged.append(row)
    return merged


def side_by_side(name: str, published: Published, builds: Sequence[BuildRow]) -> Table:
    """Return a table of scores: each row of the paper with this build's under it, then further rows.

    Further rows of this build come before those of the literature.
    """
    asked = published.tables[name]
    notes = Notes()
    eligible = [row for row in builds if row.scores.keys() & set(asked.metrics)]
    here = [row for row in eligible if row.dataset == asked.dataset]
    shown = standing = eligible if published.any_data_stands_in else here
    if asked.only_named:
        named = {row.build for row in asked.rows}
        shown = [row for row in shown if row.key in named or not row.key]
    line_of = build_lines(shown, asked.metrics, asked.dataset, notes)

    lines, placed = [], []
    for row in asked.rows:
        if row.source != "paper":
            continue
        lines.append(published_line(row, asked.metrics, published.notes, notes))
        partners = [
            build for build in standing if build.key and build.key == row.build and row.split in ("", build.split)
        ]
        placed += partners
        lines += map(line_of, partners)
        if row.build and not partners:
            lines.append(table_row(BUILD, _system(row.build), *[NOTHING] * (len(asked.metrics) + 1)))
    others = sorted((build for build in shown if build not in placed), key=lambda build: not build.key)
    lines += map(line_of, others)
    lines += [published_line(row, asked.metrics, published.notes, notes) for row in asked.rows if row.source != "paper"]
    return Table(
        asked.title,
        headings(asked.metrics),
        tuple(lines),
        align=f"ll{'r' * len(asked.metrics)}l",
        caption=caption(published, asked, shown),
        notes=tuple(notes.written),
        name=name,
    )


def headings(metrics: Sequence[str]) -> tuple[str, ...]:
    """Return the headings of the cells of :func:`published_line` and :func:`build_line`."""
    return "source", "system", *(COLUMNS[metric].label for metric in metrics), "from"


def caption(published: Published, asked: PublishedTable, shown: Iterable[BuildRow]) -> str:
    """Return the caption that explains the numbers of the table and how this build scored."""
    unscaled = "bits" if any("information" in metric for metric in asked.metrics) else "lengths and ranks"
    parts = [f"Scores times 100, {unscaled} as they are; in parentheses 95 % intervals, by resampling images."]
    protocols = [row.protocols[metric] for row in shown for metric in row.protocols if metric in asked.metrics]
    if protocols:
        words = in_words(protocols)
        parts.append(f"This build: {words or 'see the notes'}.")
        elsewhere = sorted({row.dataset for row in shown} - {asked.dataset})
        if published.any_data_stands_in and elsewhere:
            parts.append(
                f"The paper's rows are of {asked.dataset}; this build's are of {', '.join(elsewhere)} where they say "
                "so: another pool and other pictures. Compare the order of the systems, not their level."
            )
    else:
        parts.append(f"This build has no run on {asked.dataset} here.")
    parts.append("The notes have the exact protocols, those of the paper and the literature where they are known.")
    return " ".join(parts)


def _system(key: str) -> str:
    """Return a retriever may be called "paper": what it is stands before its name."""
    return key if "/" in key or not key else f"retriever {key}"


def published_line(
    row: PublishedRow, metrics: Sequence[str], words: Mapping[str, str], notes: Notes
) -> tuple[Cell, ...]:
    """Return a row's cells: source, system, the metrics, and where it is from."""

    def marks(keys: Iterable[str]) -> tuple[int, ...]:
        return tuple(notes.number(words[key]) for key in keys)

    def cell(number: Number | None) -> Cell:
        return Cell(NOTHING) if number is None else Cell(number.shown, notes=marks(number.notes))

    system = Cell(row.system, notes=marks(row.notes))
    return table_row(row.source, system, *(cell(row.values.get(metric)) for metric in metrics), row.origin)


def build_lines(
    shown: Sequence[BuildRow], metrics: Sequence[str], dataset: str, notes: Notes
) -> Callable[[BuildRow], tuple[Cell, ...]]:
    """Return a function from a row to its cells, as :func:`published_line`.

    Another data set is named, and the split if there are several. The notes have the protocols.
    """
    several = len({row.split for row in shown}) > 1

    def line(row: BuildRow) -> tuple[Cell, ...]:
        place = ", ".join([*([row.dataset] if row.dataset != dataset else []), *([row.split] if several else [])])
        name = _system(row.key) + row.variant + (f" ({place})" if place else "")
        scores = {
            metric: COLUMNS[metric].cell(row.scores[metric]._asdict()) for metric in row.scores if metric in metrics
        }
        protocols = dict.fromkeys(row.protocols[metric] for metric in metrics if metric in row.protocols)
        origin = Cell(f"{row.split} split", notes=tuple(notes.number(f"Protocol: {one}") for one in protocols))
        return table_row(BUILD, name, *(scores.get(metric, NOTHING) for metric in metrics), origin)

    return line
