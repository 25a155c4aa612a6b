"""``vitcapr features push`` and ``pull``: copy sealed stores to and from remote folders."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitcapr.commands.main import Arrays, Sealed
from vitcapr.errors import UserError

if TYPE_CHECKING:
    import numpy as np

Url = Annotated[str, typer.Argument(help="A folder, sftp://HOST/PATH, s3://BUCKET/PATH, gs://..., http://...")]
Data = Annotated[Path | None, typer.Option("--data", help="manifest.json of the data set, for its splits.")]
Patience = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds without progress after which the transfer is given up.")
]


def push(sealed: Sealed, url: Url, data: Data = None, patience: Patience = 60.0) -> None:
    """Copy a store to a remote folder. When repeated, it sends only missing files."""
    from vitcapr.progress import Reporter
    from vitcapr.store.reader import open_features
    from vitcapr.store.remote_folder import RemoteFolder
    from vitcapr.store.transfer import push as push_store

    manifest = sealed / "manifest.json" if sealed.is_dir() else sealed
    with Reporter() as reporter, open_features(manifest) as store:
        splits = None if data is None else _rows_of_splits(data, store.ids, store.identity)
        push_store(manifest, RemoteFolder(url, patience), reporter, splits)
    typer.echo(f"{store.fingerprint[:16]} is whole at {url}")


def pull(
    url: Url,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DEST]", help="Folder to write (default: its folder among the stores).")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only the chunks that hold rows of this split.")] = None,
    data: Data = None,
    arrays: Arrays = None,
    patience: Patience = 60.0,
) -> None:
    """Copy a store from a remote folder. When repeated, it fetches only missing files."""
    from vitcapr.pipeline.paths import stores_root
    from vitcapr.progress import Reporter
    from vitcapr.store.reader import open_features
    from vitcapr.store.remote_folder import RemoteFolder
    from vitcapr.store.transfer import find_remote
    from vitcapr.store.transfer import pull as pull_store
    from vitcapr.store.writer import store_folder

    remote = find_remote(RemoteFolder(url, patience))
    names = arrays.split(",") if arrays else None
    rows = None
    if split is not None and data is None:
        rows = remote.split_rows(split)
    elif split is not None and data is not None:
        rows = _rows_of_splits(data, remote.ids(), remote.identity).get(split)
        if rows is None:
            raise UserError(f"the data set has nothing in a split '{split}'", where=data)
    part = "-part" if rows is not None or names is not None else ""
    whole = store_folder(stores_root(), remote.manifest["fingerprint"])
    with Reporter() as reporter:
        sealed = pull_store(remote, folder or whole.with_name(whole.name + part), reporter, rows=rows, arrays=names)
    with open_features(sealed) as store:
        typer.echo(str(store))
        if store.partial:
            for name, array in store.items():
                here = ", ".join(f"{first}-{last - 1}" for first, last in array.rows_here)
                typer.echo(f"  only a part: rows {here} of '{name}'")
    typer.echo(f"sealed: {sealed}")


def _rows_of_splits(manifest: Path, ids: list[str], identity: str) -> "dict[str, np.ndarray]":
    """The rows of every split that is not empty."""
    import numpy as np

    from vitcapr.formats.manifest import SPLITS, read_manifest

    data = read_manifest(manifest)
    table = data.images if identity == "image_id" else data.captions
    if table[identity].tolist() != ids:
        raise UserError("the store is of other images or captions than this data set", where=manifest)
    rows = {split: np.flatnonzero(table["split"].to_numpy() == split) for split in SPLITS}
    return {split: places for split, places in rows.items() if len(places)}
