"""A paper's numbers, this build's and the literature's, side by side: Markdown, CSV and LaTeX."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.cli.parts.named import parse_named
from vitcapr.cli.parts.options import Log
from vitcapr.cli.parts.stage import launch
from vitcapr.files import write_text
from vitcapr.metrics.before_after import read_comparison, reranking, self_critical
from vitcapr.metrics.hard_negatives import hard_negatives, read_ranks
from vitcapr.metrics.latex import document, to_latex
from vitcapr.metrics.over_seeds import over_seeds
from vitcapr.metrics.printed_table import PrintedTable, to_csv, to_markdown
from vitcapr.metrics.published.numbers import TABLE_NAMES, Published, read_published
from vitcapr.metrics.setups import other_numbers, read_setup
from vitcapr.metrics.setups import training as training_table
from vitcapr.metrics.side_by_side import build_rows, side_by_side
from vitcapr.metrics.summary import read_summary
from vitcapr.progress import Reporter


def main(
    summary: Annotated[Path, typer.Argument(help="summary.csv of one experiment, or of all")],
    output_dir: Annotated[Path, typer.Option(help="Receives three files a table, and PAPER.md, .tex and .csv")],
    paper: Annotated[str, typer.Option(help="Whose numbers: vitcap-r, blip2-flickr30k or bert-vit")] = "vitcap-r",
    comparison: Annotated[
        list[Path] | None, typer.Option(help="comparison.json of two scored systems; repeat the option for more")
    ] = None,
    card: Annotated[
        list[Path] | None, typer.Option(help="card.json of a captioner or a retriever; repeat the option for more")
    ] = None,
    ranks: Annotated[
        list[Path] | None, typer.Option(help="RETRIEVER/SPLIT/ranks.npz; repeat the option for more")
    ] = None,
    training: Annotated[
        list[str] | None, typer.Option(help="MODEL=SYSTEM of a model that is one seed of a system; repeat for more")
    ] = None,
    log: Log = None,
) -> None:
    """Set the paper's numbers, this build's and the literature's side by side.

    Rows are matched by name. For vitcap-r: the captioners ``baseline`` and ``patch_attention`` under the decodings
    ``greedy``, ``beam`` and ``reranked``, and the retrievers ``paper`` and ``paper_hard_negatives``. For
    blip2-flickr30k: the retrievers ``raw``, ``linear`` and ``mlp``. For bert-vit: the matcher ``fine_tuned`` and
    ``devise``. What has another name is a row of its own.
    """
    published = read_published(paper)
    systems = {model: str(system) for model, system in parse_named(training or [], "--training").items()}
    builds = over_seeds(build_rows(read_summary(summary)), systems)
    compared = [read_comparison(path) for path in comparison or []]
    others: dict[str, Callable[[], PrintedTable]] = {
        "hard_negatives": lambda: hard_negatives(published, builds, read_ranks(ranks or [])),
        "reranking": lambda: reranking(compared, builds),
        "self_critical": lambda: self_critical(compared, builds),
        "training": lambda: training_table(published, [read_setup(path) for path in card or []]),
        "other_numbers": lambda: other_numbers(published),
    }
    tables = [
        others[name]() if name in others else side_by_side(name, published, builds) for name in TABLE_NAMES[paper]
    ]
    for table in tables:
        write_text(output_dir / f"{table.name}.md", to_markdown(table))
        write_text(output_dir / f"{table.name}.csv", to_csv(table))
        write_text(output_dir / f"{table.name}.tex", to_latex(table))
    title = f"{published.name}: paper, this build, literature"
    write_text(output_dir / f"{paper}.md", _page(title, published, tables))
    write_text(output_dir / f"{paper}.tex", document(title, tables))
    write_text(output_dir / f"{paper}.csv", _numbers(published))
    with Reporter(log) as reporter:
        reporter.line(f"paper_tables: {len(tables)} tables beside {published.name} in {output_dir}")


def _page(title: str, published: Published, tables: Sequence[PrintedTable]) -> str:
    head = f"## {title}\n\n{published.title}. {published.citation}.\n"
    return "\n".join([head, *map(to_markdown, tables)])


def _numbers(published: Published) -> str:
    """Every published score, as printed and in this project's units: tidy, a row a number."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["table", "source", "system", "metric", "printed", "unit", "value", "from", "notes"])
    for table, row, metric, number in published.numbers():
        notes = " ".join(published.notes[key] for key in dict.fromkeys((*number.notes, *row.notes)))
        writer.writerow(
            [table, row.source, row.system, metric, number.printed, number.unit, number.value, row.origin, notes]
        )
    return stream.getvalue()


if __name__ == "__main__":
    launch(main)
