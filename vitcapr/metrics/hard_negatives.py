"""What hard negatives do to Recall@K: retrievers with and without them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from vitcapr.metrics.bootstrap import Measure, compare
from vitcapr.metrics.printed_table import NOTHING, Entry, Notes, PrintedTable
from vitcapr.metrics.published.numbers import Published
from vitcapr.metrics.retrieval_files import RankFile
from vitcapr.metrics.side_by_side import (
    BUILD,
    LABELS,
    BuildRow,
    Names,
    build_line,
    caption,
    place,
    published_line,
    scale_of,
)

WITH_THEM = "_hard_negatives"
"""A retriever whose name is another's with this after it is that one, trained with hard negatives."""
_SAMPLES, _SEED = 1000, 0
_MAIN = "i2t_recall_1"

Measured = Mapping[tuple[str, str], Mapping[str, Measure]]
"""By retriever and split, by metric."""


def read_ranks(paths: Sequence[Path]) -> Measured:
    """The scores by image of ``.../<retriever>/<split>/ranks.npz``.

    Raises:
        UserError: a file is missing or holds no ranks.
    """
    return {(path.parent.parent.name, path.parent.name): RankFile.read(path).measures() for path in paths}


def hard_negatives(published: Published, builds: Sequence[BuildRow], measured: Measured) -> PrintedTable:
    """Retrievers by Recall@K; under each that has its like without hard negatives, what these changed.

    Args:
        measured: where it has both retrievers with the scores of their rows, the change has its paired interval.
    """
    asked = published.tables["retrieval_coco"]
    notes = Notes()
    paper = [row for row in asked.rows if row.source == "paper"]
    lines = [published_line(row, asked.metrics, published.notes, notes) for row in paper]
    before, after = (row.values for row in paper)
    changes = {name: _signed(after[name].value - before[name].value, name) for name in before}
    lines.append(_change_line("paper", changes, asked.metrics))

    shown = [row for row in builds if _MAIN in row.scores and not row.variant]
    by_place = {place(row): row for row in shown}
    names = Names(shown, "")
    for row in shown:
        lines.append(build_line(row, names, asked.metrics))
        plain = by_place.get(place(replace(row, key=row.key.removesuffix(WITH_THEM))))
        if plain is not None and plain is not row:
            changes = {name: _change(plain, row, name, measured) for name in asked.metrics if name in row.scores}
            lines.append(_change_line(BUILD, changes, asked.metrics))
    return PrintedTable(
        "hard_negatives",
        "Hard negatives against Recall@K",
        "The paper's rows are of MS COCO. A change is with hard negatives - without, on the same images; in "
        f"parentheses its 95 % interval, by resampling images in pairs, {_SAMPLES} times. {caption(asked, shown)}",
        ("source", "system", *(LABELS[metric] for metric in asked.metrics), "from"),
        tuple(lines),
        align=f"ll{'r' * len(asked.metrics)}l",
        notes=tuple(notes.written),
    )


def _change(plain: BuildRow, row: BuildRow, metric: str, measured: Measured) -> str:
    change = row.scores[metric].value - plain.scores[metric].value
    before, after = (_measure(one, metric, measured) for one in (plain, row))
    if before is None or after is None or before.statistics.shape != after.statistics.shape:
        return _signed(change, metric)
    found = compare(after, before, _SAMPLES, _SEED)
    return f"{_signed(change, metric)} ({_signed(found.low, metric)} to {_signed(found.high, metric)})"


def _measure(row: BuildRow, metric: str, measured: Measured) -> Measure | None:
    """The row's score by image; ranks of another experiment have its name and other scores."""
    measure = measured.get((row.key, row.split), {}).get(metric)
    return measure if measure is not None and abs(measure.value - row.scores[metric].value) < 1e-6 else None


def _signed(change: float, metric: str) -> str:
    return f"{scale_of(metric) * change:+.2f}"


def _change_line(source: str, changes: Mapping[str, str], metrics: Sequence[str]) -> tuple[Entry, ...]:
    cells = (Entry(changes.get(metric, NOTHING)) for metric in metrics)
    return Entry(source), Entry("change with hard negatives"), *cells, Entry("difference")
