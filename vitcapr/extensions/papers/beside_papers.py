"""All tables beside a paper: its numbers, this build's and the literature's, and the effect of one change."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vitcapr.extensions.papers.published import TABLE_NAMES, Published, read_published
from vitcapr.extensions.papers.setups import read_training_setup, training
from vitcapr.extensions.papers.side_by_side import (
    BEFORE_TRAINING,
    BUILD,
    BuildRow,
    build_lines,
    build_rows,
    caption,
    headings,
    published_line,
    seed_average,
    side_by_side,
)
from vitcapr.files import write_text
from vitcapr.formats.containers import frame_to_csv
from vitcapr.formats.page import write_page
from vitcapr.formats.scores import RankFile
from vitcapr.formats.tables import (
    NOTHING,
    Cell,
    Notes,
    PageSection,
    Table,
    row,
    to_csv,
    to_document,
    to_latex,
    to_markdown,
    to_page,
)
from vitcapr.metrics.bootstrap import Measure, compare
from vitcapr.metrics.labels import COLUMNS
from vitcapr.metrics.retrieval_measures import file_measures

WITH_THEM = "_hard_negatives"
"""A retriever whose name is another's with this after it is that one, trained with hard negatives."""
_SAMPLES, _SEED = 1000, 0
_MAIN = "i2t_recall_1"
VALIDATION = "validation"

Measured = Mapping[tuple[str, str], Mapping[str, Measure]]
"""By retriever and split, by metric."""


def paper_tables(
    paper: str,
    summary: pd.DataFrame,
    *,
    systems: Mapping[str, str],
    cards: Sequence[Path],
    ranks: Sequence[Path],
) -> list[Table]:
    """Return the tables of a paper in the order of its page.

    Args:
        systems: see :func:`~vitcapr.extensions.papers.side_by_side.seed_average`.
        cards: files ``card.json``; ranks: files ``ranks.npz``.
    """
    published = read_published(paper)
    builds = seed_average(build_rows(summary), systems)
    others: dict[str, Callable[[], Table]] = {
        "hard_negatives": lambda: hard_negatives(published, builds, read_ranks(ranks)),
        "gains": lambda: gains(published, builds),
        "training": lambda: training(published, [read_training_setup(path) for path in cards]),
        "other_numbers": lambda: other_numbers(published),
    }
    return [others[name]() if name in others else side_by_side(name, published, builds) for name in TABLE_NAMES[paper]]


def beside_the_paper(paper: str, tables: Sequence[Table]) -> PageSection:
    """Return the tables that hold scores of the paper and of this build side by side, for the first page."""
    published = read_published(paper)
    scores = [table for table in tables if table.name in published.tables]
    scored = [{line[0].text for line in t.rows if any(cell.text != NOTHING for cell in line[2:-1])} for t in scores]
    both = [table for table, sources in zip(scores, scored, strict=True) if {BUILD, "paper"} <= sources]
    return PageSection("paper", "Beside the paper", f"{published.title}. {published.citation}.", both)


def write_paper_tables(
    paper: str, tables: Sequence[Table], *, page: Sequence[Path], latex: Path, numbers: Path
) -> None:
    """All tables as a page and a document, the published numbers as CSV.

    Each table stands beside the page as Markdown, CSV and LaTeX, too.
    """
    published = read_published(paper)
    for table in tables:
        for ending, text in (("md", to_markdown(table)), ("csv", to_csv(table)), ("tex", to_latex(table))):
            write_text(latex.with_name(f"{table.name}.{ending}"), text)
    title = f"{published.name}: paper, this build, literature"
    write_page(page, to_page(tables, title, f"{published.title}. {published.citation}."), home="../../index.html")
    write_text(latex, to_document(tables, title))
    write_text(numbers, frame_to_csv(published_numbers(published)))


def published_numbers(published: Published) -> pd.DataFrame:
    """Return every published score, as printed and in this project's units: tidy, a row a number."""
    rows = []
    for table, each, metric, number in published.numbers():
        notes = " ".join(published.notes[key] for key in dict.fromkeys((*number.notes, *each.notes)))
        place = (table, each.source, each.system, metric)
        rows.append((*place, number.printed, number.unit, number.value, each.origin, notes))
    columns = ["table", "source", "system", "metric", "printed", "unit", "value", "from", "notes"]
    return pd.DataFrame(rows, columns=columns)


def other_numbers(published: Published) -> Table:
    return Table(
        "Other numbers of the paper",
        ("quantity", "paper", "from", "this build"),
        tuple(row(*one) for one in published.other_numbers),
        align="llll",
        caption="As printed in the paper; beside each, what stands for it in this build.",
        name="other_numbers",
    )


def read_ranks(paths: Sequence[Path]) -> Measured:
    """Return the scores by image of ``.../<retriever>/<split>/ranks.npz``."""
    return {(path.parent.parent.name, path.parent.name): file_measures(RankFile.read(path)) for path in paths}


def hard_negatives(published: Published, builds: Sequence[BuildRow], measured: Measured) -> Table:
    """Return retrievers by Recall@K, each with the change that hard negatives made, where both are known.

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
    line_of = build_lines(shown, asked.metrics, "", notes)
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
    """Peng's gains over DeViSE: text-to-image Recall@K and match information, the latter over the untrained model too.

    The printed recalls are the differences of table 5 on the validation split, text to image.
    """

    def score(key: str, metric: str, variant: str = "") -> float:
        """Return the score on the validation split; NaN if it is missing."""
        place = (key, VALIDATION, variant)
        scores = [build.scores for build in builds if (build.key, build.split, build.variant) == place]
        return scores[0][metric].value if scores and metric in scores[0] else np.nan

    lines = []
    for metric, printed in published.gains["over_devise"].items():
        points = 100 * (score("fine_tuned", metric) - score("devise", metric))
        label = f"{COLUMNS[metric].label} over DeViSE"
        lines.append(row(label, f"{printed} %", "section 3.2.3", _signed(points, "points")))
    for metric, printed in published.gains["of_information"].items():
        for other, baseline, said in (
            ("DeViSE", score("devise", metric), f"{printed} %"),
            ("before training", score("fine_tuned", metric, BEFORE_TRAINING), NOTHING),
        ):
            share = 100 * (score("fine_tuned", metric) / baseline - 1) if baseline else np.nan
            lines.append(row(f"{COLUMNS[metric].label} over {other}", said, "section 2.3", _signed(share, "%")))
    return Table(
        "Gains",
        ("gain", "paper", "from", "this build"),
        tuple(lines),
        align="lrlr",
        caption="Recall: points on the validation split, text to image, where the paper's own table 5 gives 12.9, 10.0 "
        "and 9.9: 9.0 looks like a misprint. Information: relative; the paper prints no value of its baseline, DeViSE.",
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
