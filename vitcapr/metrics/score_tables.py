"""Score tables of a summary: one row per model, one column per score."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from vitcapr.formats.tables import NOTHING, Cell, Table, row, to_page
from vitcapr.metrics.columns import GROUPS, ScoreColumn
from vitcapr.metrics.labels import in_groups


def score_tables(summary: pd.DataFrame) -> Iterator[Table]:
    """The tables that ``summary`` (see :mod:`vitcapr.metrics.summary`) holds scores for, per data set and split."""
    for (dataset, split), part in summary.groupby(["dataset", "split"], sort=False):
        for group in GROUPS:
            columns = [column for column in in_groups(group) if (part["metric"] == column.name).any()]
            if not columns:
                continue
            of_group = part[part["metric"].isin([column.name for column in columns])]
            rows = []
            for (model, decoding), scores in of_group.groupby(["model", "decoding"], sort=False):
                by_name = {score["metric"]: score for score in scores.to_dict("records")}
                name = f"{model}, {decoding}" if decoding else str(model)
                rows.append(row(name, *(_cell(by_name.get(column.name), column) for column in columns)))
            title = f"{group.title}: {dataset}, {split} split, {int(of_group['n'].max())} images"
            yield Table(title, ("model", *(column.short for column in columns)), tuple(rows))


def scores_page(summary: pd.DataFrame) -> str:
    """All tables in Markdown with 95 % intervals, and the protocols of the scores."""
    if summary.empty:
        return "No scores.\n"
    protocols = "".join(f"- `{protocol}`\n" for protocol in summary["protocol"].drop_duplicates())
    words = "\nIn parentheses: 95 % intervals, by resampling images. Protocols:\n\n"
    return to_page(list(score_tables(summary))) + words + protocols


def _cell(score: Mapping[Hashable, Any] | None, column: ScoreColumn) -> Cell:
    return Cell(NOTHING) if score is None else column.cell(score)
