"""The metrics files of an experiment as one tidy CSV and one table for people."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.metrics import read_metrics
from vitcapr.artefacts.summary import write_summary
from vitcapr.cli.parts.options import Log
from vitcapr.cli.parts.stage import launch
from vitcapr.files import write_text
from vitcapr.metrics.score_tables import scores_page
from vitcapr.metrics.summary import collect, tidy
from vitcapr.progress import Reporter


def main(
    metrics: Annotated[list[Path], typer.Argument(help="metrics.json files")],
    experiment: Annotated[str, typer.Option(help="The experiment's name")],
    output: Annotated[Path, typer.Option(help="summary.csv to write")],
    table: Annotated[Path, typer.Option(help="scores.md to write")],
    collect_in: Annotated[
        Path | None, typer.Option("--collect", help="A summary.csv of all experiments, to take this one up")
    ] = None,
    log: Log = None,
) -> None:
    """Collect the scores of an experiment."""
    rows = tidy([read_metrics(path) for path in metrics], experiment)
    write_summary(output, rows)
    write_text(table, scores_page(rows))
    if collect_in is not None:
        collect(collect_in, rows, experiment)
    with Reporter(log) as reporter:
        reporter.line(f"summary: {len(rows)} scores of {len(metrics)} files in {output}")


if __name__ == "__main__":
    launch(main)
