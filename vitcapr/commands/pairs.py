"""Write pairs as a table, with the pictures in Base64, and what rooms do with pairs."""

import importlib
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.data.pairs.table import export_pairs
from vitcapr.formats.manifest import read_manifest
from vitcapr.progress import Reporter
from vitcapr.rooms import rooms

app = typer.Typer(
    name="pairs", help=__doc__, add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True
)


@app.callback()
def _commands() -> None:
    """Export and audit text-image pairs."""


@app.command()
def export(
    manifest: Annotated[Path, typer.Option(help="manifest.json of the data set.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The table to write: .csv, .tsv or .jsonl.")],
    base64: Annotated[
        bool,
        typer.Option("--base64", help="Write the images themselves into the table, in Base64, instead of their paths."),
    ] = False,
) -> None:
    """Write pairs as a table that data.pairs.table can read, with the texts before cleaning."""
    data = read_manifest(manifest)
    with Reporter() as reporter:
        with reporter.track(f"export {output.name}", len(data.captions), "pairs") as tracker:
            number = export_pairs(data, manifest, output, encoded=base64, advance=tracker.advance)
        reporter.line(f"{output}: {number:,} pairs" + (", encoding: base64" if base64 else f" of {data.image_root}"))


for package, folder in rooms().items():
    if (folder / "pairs_command.py").is_file():
        app.command()(getattr(importlib.import_module(f"{package}.pairs_command"), folder.name))
