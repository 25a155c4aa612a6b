"""Audit pairs of images and texts."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import Log, typer_group
from vitcapr.progress import print_lines

app = typer_group(__doc__)


@app.callback()
def _commands() -> None:
    """Audit pairs of images and texts."""


@app.command()
def audit(
    images: Annotated[Path, typer.Argument(help="Sealed manifest.json of image features with cls, or its folder.")],
    texts: Annotated[Path, typer.Argument(help="Sealed manifest.json of the features of all captions, or its folder.")],
    data: Annotated[Path, typer.Option(help="manifest.json of the data set, or its folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables and the page.")],
    log: Log = None,
) -> None:
    """Find wrong captions, images and captions that stand in two splits, and odd captions, from two stores.

    The folder holds audit.parquet (a row for each caption), leaks.csv, tables.md and index.html.
    """
    from vitcapr.extensions.audit.audit import audit as audit_data
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.terminal import print_listing
    from vitcapr.progress import Reporter
    from vitcapr.store.reader import open_features

    stores = open_features(images), open_features(texts)
    with Reporter(log) as reporter:
        result = audit_data(read_manifest(data), *stores, reporter)
        result.write(*(output / name for name in ("audit.parquet", "leaks.csv", "tables.md", "index.html")))
    print_listing(result.counts)
    print_lines(f"\n{output / 'index.html'}")
