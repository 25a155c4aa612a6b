"""How a stage command runs and ends."""

import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, cast

import typer

from vitcapr.cli.parts.recorded import recorded
from vitcapr.errors import Preempted, UserError


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
