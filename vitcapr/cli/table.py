"""The score table of a summary, on the terminal."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitcapr.cli.parts.options import Summary
from vitcapr.cli.parts.stage import launch
from vitcapr.metrics.summary import read_summary
from vitcapr.metrics.table import Cell, Section, sections


def main(
    summary: Summary,
    report: Annotated[Path | None, typer.Option(help="The report to point at")] = None,
) -> None:
    """Print the scores of an experiment, or of all."""
    console = Console(highlight=False)
    for experiment, part in read_summary(summary).groupby("experiment", sort=False):
        console.print(f"[bold]{escape(str(experiment))}[/bold]")
        for section in sections(part):
            console.print()
            console.print(section.title, markup=False)
            console.print(_rendered(section))
    console.print(f"Scores:  {summary}", soft_wrap=True, markup=False)
    if report is not None:
        console.print(f"Report:  {report}", soft_wrap=True, markup=False)


def _rendered(section: Section) -> Table:
    """Half the interval's width stands below each score, so that eight columns fit in 80 characters."""
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    table.add_column("model", overflow="fold", min_width=10)
    for column in section.columns:
        width = max(6, *map(len, column.split()))
        table.add_column(column, justify="right", min_width=width, max_width=width)
    for model, cells in zip(section.models, section.cells, strict=True):
        table.add_row(escape(model), *map(_with_spread, cells))
    return table


def _with_spread(cell: Cell) -> str:
    if not cell.low:
        return cell.value
    return f"{cell.value}\n[dim]±{(float(cell.high) - float(cell.low)) / 2:.1f}[/dim]"


if __name__ == "__main__":
    launch(main)
