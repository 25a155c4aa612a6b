"""What stage commands share: their settings, their log, the commonest of their files, and how they end."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

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


def launch(command: Callable[..., Any] | typer.Typer) -> None:
    """Run a stage's command line, one command or several: a user's mistake is one line and exit code 2, a saved stop
    is exit code 75."""
    if isinstance(command, typer.Typer):
        app = command
    else:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command()(command)
    try:
        app()
    except (UserError, Preempted) as error:
        kind = "error" if isinstance(error, UserError) else "stopped"
        print(f"{kind}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
