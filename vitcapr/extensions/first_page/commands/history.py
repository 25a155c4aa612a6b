"""Print the runs of an experiment: scores, cost, and the keys that changed."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError


def main(
    folder: Annotated[Path, typer.Argument(help="Folder of an experiment, results/NAME.")],
    split: Annotated[str, typer.Option(help="Split whose scores are printed.")] = "test",
) -> None:
    """Print every finished run of an experiment, and the changes of the last one."""
    from rich.console import Console

    from vitcapr.extensions.first_page.run_history import HISTORY, changed, history_table, last_changes, read_history
    from vitcapr.formats.terminal import print_tables
    from vitcapr.progress import print_lines

    entries = read_history(folder)
    if not entries:
        raise UserError("no history", where=folder / HISTORY, remedy="run the experiment to its first page")
    print_tables(Console(highlight=False), [history_table(entries, split)])
    print_lines(*(f"{run.time[:16].replace('T', ' ')}  {changed(entries, n)}" for n, run in enumerate(entries)))
    print_lines(*(f"Since the run before: {change}" for change in last_changes(entries, split)))


app = typer_app(main)
