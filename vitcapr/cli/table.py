"""The score table of a summary, on the terminal."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from vitcapr.cli.stage import launch
from vitcapr.metrics.summary import read_summary
from vitcapr.metrics.table import sections


def main(
    summary: Annotated[Path, typer.Argument(help="summary.csv")],
    report: Annotated[Path | None, typer.Option(help="The report to point at")] = None,
) -> None:
    """Print the scores of an experiment, or of all."""
    console = Console(highlight=False)
    table = read_summary(summary)
    for experiment, part in table.groupby("experiment", sort=False):
        for section in sections(part, intervals=False):
            shown = Table(
                title=f"{experiment}: {section.title}", box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False
            )
            for number, column in enumerate(section.columns):
                shown.add_column(column, justify="left" if number < 2 else "right", no_wrap=number < 2)
            for row in section.rows:
                shown.add_row(*row)
            console.print(shown)
    console.print(f"Scores:  {summary}", soft_wrap=True, markup=False)
    if report is not None:
        console.print(f"Report:  {report}", soft_wrap=True, markup=False)


if __name__ == "__main__":
    launch(main)
