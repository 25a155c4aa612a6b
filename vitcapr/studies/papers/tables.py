"""All tables beside a paper: its numbers, this build's and the literature's."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from vitcapr.files import write_text
from vitcapr.formats.containers import frame_to_csv
from vitcapr.formats.page_section import PageSection
from vitcapr.formats.scores import read_comparison
from vitcapr.formats.tables import NOTHING, Table, to_csv, to_document, to_latex, to_markdown, to_page, write_page
from vitcapr.studies.papers.changes import before_and_after, gains, hard_negatives, read_ranks
from vitcapr.studies.papers.numbers import TABLE_NAMES, Published, read_published
from vitcapr.studies.papers.side_by_side import BUILD, build_rows, seed_average, side_by_side
from vitcapr.studies.papers.training_setups import other_numbers, read_training_setup, training


def paper_tables(
    paper: str,
    summary: pd.DataFrame,
    *,
    systems: Mapping[str, str],
    comparisons: Sequence[Path],
    cards: Sequence[Path],
    ranks: Sequence[Path],
) -> list[Table]:
    """The tables of a paper in the order of its page.

    Args:
        systems: see :func:`~vitcapr.studies.papers.side_by_side.seed_average`.
        comparisons: files ``comparison.json``; cards: files ``card.json``; ranks: files ``ranks.npz``.
    """
    published = read_published(paper)
    builds = seed_average(build_rows(summary), systems)
    compared = [read_comparison(path) for path in comparisons]
    others: dict[str, Callable[[], Table]] = {
        "hard_negatives": lambda: hard_negatives(published, builds, read_ranks(ranks)),
        "gains": lambda: gains(published, builds),
        "reranking": lambda: before_and_after("reranking", compared),
        "self_critical": lambda: before_and_after("self-critical training", compared),
        "training": lambda: training(published, [read_training_setup(path) for path in cards]),
        "other_numbers": lambda: other_numbers(published),
    }
    return [others[name]() if name in others else side_by_side(name, published, builds) for name in TABLE_NAMES[paper]]


def beside_the_paper(paper: str, summary: pd.DataFrame, systems: Mapping[str, str]) -> PageSection:
    """The tables that hold scores of the paper and of this build side by side, for the first page."""
    published = read_published(paper)
    builds = seed_average(build_rows(summary), systems)
    tables = [side_by_side(name, published, builds) for name in TABLE_NAMES[paper] if name in published.tables]
    scored = [{line[0].text for line in t.rows if any(cell.text != NOTHING for cell in line[2:-1])} for t in tables]
    both = [table for table, sources in zip(tables, scored, strict=True) if {BUILD, "paper"} <= sources]
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
    write_page(page, to_page(tables, title, f"{published.title}. {published.citation}."))
    write_text(latex, to_document(tables, title))
    write_text(numbers, frame_to_csv(published_numbers(published)))


def published_numbers(published: Published) -> pd.DataFrame:
    """Every published score, as printed and in this project's units: tidy, a row a number."""
    rows = []
    for table, row, metric, number in published.numbers():
        notes = " ".join(published.notes[key] for key in dict.fromkeys((*number.notes, *row.notes)))
        place = (table, row.source, row.system, metric)
        rows.append((*place, number.printed, number.unit, number.value, row.origin, notes))
    columns = ["table", "source", "system", "metric", "printed", "unit", "value", "from", "notes"]
    return pd.DataFrame(rows, columns=columns)
