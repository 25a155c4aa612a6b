"""What rooms do with pairs of images and texts."""

import importlib

import typer

from vitcapr.rooms import rooms

app = typer.Typer(
    name="pairs", help=__doc__, add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True
)


@app.callback()
def _commands() -> None:
    """Audit text-image pairs."""


for package, folder in rooms().items():
    if (folder / "pairs_command.py").is_file():
        app.command()(getattr(importlib.import_module(f"{package}.pairs_command"), folder.name))
