"""``vitcapr features import``: features that other programs computed become a sealed store."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.errors import UserError


class Rows(StrEnum):
    images = "images"
    captions = "captions"


def import_store(
    source: Annotated[
        Path, typer.Argument(help="An .h5, .npz or .npy file, a folder of .npy, clip-retrieval's folder, or an LMDB.")
    ],
    data: Annotated[
        Path | None, typer.Option("--data", help="manifest.json of a data set; the rows are put in its order.")
    ] = None,
    of: Annotated[Rows, typer.Option("--of", help="What each row describes.")] = Rows.images,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the backbone (default: name of the file).")
    ] = None,
    ids: Annotated[
        Path | None, typer.Option("--ids", help="File with the ids of the rows: a JSON list, or one id per line.")
    ] = None,
    array: Annotated[
        list[str] | None, typer.Option("--array", help="Import only this array; repeat the option for several.")
    ] = None,
    grid: Annotated[str | None, typer.Option("--grid", help="Rows and columns of patches, such as 14x14.")] = None,
    stores: Annotated[
        Path | None, typer.Option("--stores", help="Folder of the stores (default: VITCAPR_STORES or results/stores).")
    ] = None,
) -> None:
    """Convert features of another program into a sealed store."""
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.pipeline.paths import stores_root
    from vitcapr.progress import Reporter
    from vitcapr.store.foreign_files import open_foreign, read_ids
    from vitcapr.store.importing import import_features

    identity = "image_id" if of is Rows.images else "caption_id"
    order = None
    if data is not None:
        manifest = read_manifest(data)
        order = (manifest.images if of is Rows.images else manifest.captions)[identity].tolist()
    given = read_ids(ids) if ids is not None else None
    with Reporter() as reporter, open_foreign(source, given, of.value) as found:
        if array is not None:
            found = found.only(array)
        with reporter.track(f"import {source.name}", len(order or found.ids), "rows") as tracker:
            sealed = import_features(
                found,
                stores or stores_root(),
                name or source.stem,
                ids=order,
                identity=identity,
                grid=_grid(grid),
                advance=tracker.advance,
                say=reporter.line,
            )
    typer.echo(f"sealed: {sealed}")
    typer.echo(f"in an experiment: source: store:{sealed.parent.name}")


def _grid(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    rows, cross, columns = text.partition("x")
    if not (cross and rows.isdigit() and columns.isdigit()):
        raise UserError(f"--grid {text} is not ROWSxCOLUMNS", remedy="for instance --grid 14x14")
    return int(rows), int(columns)
