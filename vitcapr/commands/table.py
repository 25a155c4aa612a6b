"""Print the scores of a summary."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError


def main(
    summary: Annotated[Path, typer.Argument(help="summary.csv, or the folder that holds it.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print tables for LaTeX, which needs booktabs and graphicx.")
    ] = False,
) -> None:
    """Print the scores of an experiment, or of all."""
    summary = summary / "summary.csv" if summary.is_dir() else summary
    if not summary.is_file():
        raise UserError("no such file", where=summary, remedy="run snakemake, or name a summary.csv")
    if markdown and latex:
        raise UserError("--markdown and --latex exclude each other", remedy="give one of them")

    from rich.console import Console
    from rich.markup import escape

    from vitcapr.formats.scores import read_summary
    from vitcapr.formats.tables import to_latex, to_page
    from vitcapr.formats.terminal import print_tables
    from vitcapr.loader import ask
    from vitcapr.report.score_tables import score_tables

    console = Console(highlight=False)
    scores = read_summary(summary)
    if scores.empty:
        remedy = "the experiment trains no captioner or retriever, or scores none; its page lists its other results"
        raise UserError("no scores", where=summary, remedy=remedy)
    for experiment, part in scores.groupby("experiment", sort=False):
        tables = list(score_tables(part))
        if markdown:
            print(to_page(tables, str(experiment)))
        elif latex:
            folder = summary.parent if summary.parent.name == experiment else summary.parent / str(experiment)
            comments = [f"% {' '.join(each.split())}" for each in (str(experiment), *ask("table_comments", folder))]
            print(*comments, *map(to_latex, tables), sep="\n")
        else:
            console.print(f"[bold]{escape(str(experiment))}[/bold]")
            print_tables(console, tables)
    if not (markdown or latex):
        console.print(f"Scores:  {summary}", soft_wrap=True, markup=False)


app = typer_app(main)
