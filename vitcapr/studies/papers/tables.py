"""All tables beside a paper: its numbers, this build's and the literature's."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from vitcapr.files import write_text
from vitcapr.formats.containers import frame_to_csv
from vitcapr.formats.tables import (
    NOTHING,
    PageSection,
    Table,
    row,
    to_csv,
    to_document,
    to_latex,
    to_markdown,
    to_page,
    write_page,
)
from vitcapr.studies.papers.changes import gains, hard_negatives, read_ranks
from vitcapr.studies.papers.numbers import TABLE_NAMES, Published, read_published
from vitcapr.studies.papers.side_by_side import BUILD, build_rows, seed_average, side_by_side


def paper_tables(
    paper: str,
    summary: pd.DataFrame,
    *,
    systems: Mapping[str, str],
    ranks: Sequence[Path],
) -> list[Table]:
    """The tables of a paper in the order of its page.

    Args:
        systems: see :func:`~vitcapr.studies.papers.side_by_side.seed_average`.
        ranks: files ``ranks.npz``.
    """
    published = read_published(paper)
    builds = seed_average(build_rows(summary), systems)
    others: dict[str, Callable[[], Table]] = {
        "hard_negatives": lambda: hard_negatives(published, builds, read_ranks(ranks)),
        "gains": lambda: gains(published, builds),
        "other_numbers": lambda: other_numbers(published),
    }
    return [others[name]() if name in others else side_by_side(name, published, builds) for name in TABLE_NAMES[paper]]


def beside_the_paper(paper: str, tables: Sequence[Table]) -> PageSection:
    """The tables that hold scores of the paper and of this build side by side, for the first page."""
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
    write_page(page, to_page(tables, title, f"{published.title}. {published.citation}."))
    write_text(latex, to_document(tables, title))
    write_text(numbers, frame_to_csv(published_numbers(published)))


def published_numbers(published: Published) -> pd.DataFrame:
    """Every published score, as printed and in this project's units: tidy, a row a number."""
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
