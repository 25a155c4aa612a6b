"""What stage commands share: their settings, their log, the commonest of their files, and how they end."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Annotated, Any, cast

import typer

from vitcapr.cli.recorded import recorded
from vitcapr.errors import Preempted, UserError

Settings = Annotated[
    str,
    typer.Option("--settings", help="The stage's settings as JSON, or the path of a JSON file; {} for the defaults."),
]
Log = Annotated[Path | None, typer.Option("--log", help="A file that receives every line of progress.")]
Captions = Annotated[Path, typer.Option(help="captions.json of the split")]
Candidates = Annotated[Path, typer.Option(help="captions.json of the split, with candidates")]
ManifestFile = Annotated[Path, typer.Option(help="manifest.json of the data set")]
CaptionerVocabulary = Annotated[Path, typer.Option(help="vocabulary.json the captioner was trained with")]
RetrieverVocabulary = Annotated[Path, typer.Option(help="vocabulary.json the retriever was trained with")]
Split = Annotated[str, typer.Option(help="The split that was captioned")]


def launch(command: Callable[..., Any] | typer.Typer, shelve: Sequence[str] = ()) -> None:
    """Run a stage's command line, one command or several: a user's mistake is one line and exit code 2, a saved stop
    is exit code 75.

    Args:
        shelve: the parameters that name what a long stage writes; its results are kept on the shelf, and taken from
            there (:mod:`vitcapr.shelf`). The stage may read no file but those that its parameters name.
    """
    if isinstance(command, typer.Typer):
        app = command
    else:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command()(recorded(command, _module_of(command), shelve))
    try:
        app()
    except (UserError, Preempted) as error:
        kind = "error" if isinstance(error, UserError) else "stopped"
        print(f"{kind}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _module_of(command: Callable[..., Any]) -> str:
    """The name of the command's module, which calls itself ``__main__`` while it runs."""
    return str(cast(FunctionType, command).__globals__["__spec__"].name)
