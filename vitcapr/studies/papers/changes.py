"""The effect of one change on recalls: hard negatives, and Peng's gains."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from vitcapr.formats.scores import RankFile
from vitcapr.formats.tables import NOTHING, Cell, Notes, Table, row
from vitcapr.metrics.bootstrap import Measure, compare
from vitcapr.metrics.labels import COLUMNS
from vitcapr.metrics.retrieval import file_measures
from vitcapr.studies.papers.numbers import Published
from vitcapr.studies.papers.side_by_side import (
    BEFORE_TRAINING,
    BUILD,
    BuildRow,
    build_lines,
    caption,
    headings,
    published_line,
)

WITH_THEM = "_hard_negatives"
"""A retriever whose name is another's with this after it is that one, trained with hard negatives."""
_SAMPLES, _SEED = 1000, 0
_MAIN = "i2t_recall_1"
VALIDATION = "validation"

Measured = Mapping[tuple[str, str], Mapping[str, Measure]]
"""By retriever and split, by metric."""


def read_ranks(paths: Sequence[Path]) -> Measured:
    """The scores by image of ``.../<retriever>/<split>/ranks.npz``."""
    return {(path.parent.parent.name, path.parent.name): file_measures(RankFile.read(path)) for path in paths}


def hard_negatives(published: Published, builds: Sequence[BuildRow], measured: Measured) -> Table:
    """Retrievers by Recall@K; under each that has its like without hard negatives, what these changed.

    Args:
        measured: where it has both retrievers with the scores of their rows, the change has its paired interval.
    """
    asked = published.tables["retrieval_coco"]
    notes = Notes()
    paper = [one for one in asked.rows if one.source == "paper"]
    lines = [published_line(one, asked.metrics, published.notes, notes) for one in paper]
    before, after = (one.values for one in paper)
    changes = {name: COLUMNS[name].difference(after[name].value - before[name].value) for name in before}
    lines.append(_change_line("paper", changes, asked.metrics))

    shown = [build for build in builds if _MAIN in build.scores and not build.variant]
    by_place = {(build.split, build.key): build for build in shown}
    line_of = build_lines(shown, asked.metrics, "")
    for build in shown:
        lines.append(line_of(build))
        plain = by_place.get((build.split, build.key.removesuffix(WITH_THEM)))
        if plain is not None and plain is not build:
            changes = {name: _change(plain, build, name, measured) for name in asked.metrics if name in build.scores}
            lines.append(_change_line(BUILD, changes, asked.metrics))
    return Table(
        "Hard negatives against Recall@K",
        headings(asked.metrics),
        tuple(lines),
        align=f"ll{'r' * len(asked.metrics)}l",
        caption="The paper's rows are of MS COCO. A change is with hard negatives - without, on the same images; in "
        f"parentheses its 95 % interval, by resampling images in pairs, {_SAMPLES} times. "
        + caption(published, asked, shown),
        notes=tuple(notes.written),
        name="hard_negatives",
    )


def gains(published: Published, builds: Sequence[BuildRow]) -> Table:
    """Peng's gains: Recall@K over DeViSE (abstract), match information over the model before training (section 2.3).

    The paper does not say of which split and direction its recalls are: here, validation, the mean of both directions.
    """

    def mean(key: str, *metrics: str, variant: str = "") -> float:
        """On the validation split; NaN if it is not there."""
        scores = [
            build.scores for build in builds if (build.key, build.split, build.variant) == (key, VALIDATION, variant)
        ]
        return float(
            np.mean([scores[0][metric].value if scores and metric in scores[0] else np.nan for metric in metrics])
        )

    lines = []
    for metric, printed in published.gains["over_devise"].items():
        both = metric, metric.replace("i2t", "t2i")
        points = 100 * (mean("fine_tuned", *both) - mean("devise", *both))
        at = COLUMNS[metric].label.split()[-1]
        lines.append(row(f"{at} over DeViSE", f"{printed} %", "abstract", _signed(points, "points")))
    for metric, printed in published.gains["of_information"].items():
        share = 100 * (mean("fine_tuned", metric) / mean("fine_tuned", metric, variant=BEFORE_TRAINING) - 1)
        label = f"{COLUMNS[metric].label} over before training"
        lines.append(row(label, f"{printed} %", "section 2.3", _signed(share, "%")))
    return Table(
        "Gains",
        ("gain", "paper", "from", "this build"),
        tuple(lines),
        align="lrlr",
        caption="Recall: points on the validation split, mean of both directions; the paper's own table 5 gives 12.95, "
        "10.4 and 10.1. Information: relative; the paper does not print the values before training.",
        name="gains",
    )


def _signed(value: float, unit: str) -> str:
    return NOTHING if np.isnan(value) else f"{value:+.1f} {unit}"


def _change(plain: BuildRow, build: BuildRow, metric: str, measured: Measured) -> Cell:
    change = build.scores[metric].value - plain.scores[metric].value
    before, after = (measured.get((one.key, one.split), {}).get(metric) for one in (plain, build))
    if before is None or after is None:
        return COLUMNS[metric].difference(change)
    difference = compare(after, before, _SAMPLES, _SEED)
    return COLUMNS[metric].difference(change, difference.low, difference.high)


def _change_line(source: str, changes: Mapping[str, Cell], metrics: Sequence[str]) -> tuple[Cell, ...]:
    cells = (changes.get(metric, NOTHING) for metric in metrics)
    return row(source, "change with hard negatives", *cells, "difference")
