"""Values with intervals on one axis, a row each: for the paired differences and the history on the first page."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from vitcapr.extensions.first_page.run_history import Entry, best_scores, changed
from vitcapr.formats.tables import Cell
from vitcapr.metrics.bootstrap import NOT_SHOWN
from vitcapr.metrics.labels import COLUMNS


class Mark(NamedTuple):
    """A value with its interval, as it is printed and in units of the axis; ``filled`` for a difference shown."""

    label: str
    cell: Cell
    low: float
    value: float
    high: float
    filled: bool = True


class Marks(NamedTuple):
    """A dot plot. Positions are percent of the axis, which has ``ends``; ``zero`` is None where 0 is outside."""

    caption: str
    rows: Sequence[Mark]
    ends: tuple[str, str]
    zero: float | None


def marks(caption: str, rows: Sequence[Mark], with_zero: bool = False) -> Marks | None:
    """Place values on a common axis; None without rows."""
    if not rows:
        return None
    bounds = [bound for one in rows for bound in (one.low, one.high)] + ([0.0] if with_zero else [])
    start, width = min(bounds), (max(bounds) - min(bounds)) or 1.0

    def place(value: float) -> float:
        return round(100 * (value - start) / width, 2)

    placed = [one._replace(low=place(one.low), value=place(one.value), high=place(one.high)) for one in rows]
    sign = "+" if with_zero else ""
    ends = (f"{start:{sign}.1f}", f"{start + width:{sign}.1f}")
    return Marks(caption, placed, ends, place(0) if start <= 0 <= start + width else None)


def difference_marks(differences: pd.DataFrame) -> Marks | None:
    """Draw all paired differences (:func:`vitcapr.metrics.system_comparison.paired_differences`), a forest plot."""
    rows = []
    for one in differences.to_dict("records"):
        column = COLUMNS[str(one["metric"])]
        low, value, high = (float(one[key]) * column.scale for key in ("low", "difference", "high"))
        cell = column.difference(one["difference"], one["low"], one["high"])
        label = f"{column.label}: {one['after']} against {one['before']}"
        rows.append(Mark(label, cell, low, value, high, one["verdict"] != NOT_SHOWN))
    return marks(
        "Paired differences in points, with 95 % intervals. A filled dot is a difference that is shown after the "
        f"correction for all {len(rows)} tests.",
        rows,
        with_zero=True,
    )


def history_marks(runs: Sequence[Entry], split: str) -> Marks | None:
    """Draw the highest of the first main score of each run, the oldest first; None for a single run."""
    best = [best_scores(run, split) for run in runs]
    metric = next((name for name in COLUMNS if any(name in scores for scores in best)), None)
    if len(runs) < 2 or metric is None:
        return None
    column, rows = COLUMNS[metric], []
    for number, (run, scores) in enumerate(zip(runs, best, strict=True)):
        if (one := scores.get(metric)) is not None:
            value, low, high = (one["value"] if one[key] is None else one[key] for key in ("value", "low", "high"))
            label = f"{run.time[:16].replace('T', ' ')}: {changed(runs, number)}"
            bounds = [column.scale * bound for bound in (low, value, high)]
            rows.append(Mark(label, column.cell(one), *bounds))
    return marks(f"The highest {column.label} of each run on the {split} split, with its 95 % interval.", rows)
