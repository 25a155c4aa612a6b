"""``vitcapr features push`` and ``pull``: copy sealed stores to and from remote folders."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import Arrays, Sealed
from vitcapr.errors import UserError

Url = Annotated[str, typer.Argument(help="A folder, sftp://HOST/PATH, s3://BUCKET/PATH, gs://..., http://...")]
Patience = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds without progress after which the transfer is given up.")
]


def push(sealed: Sealed, url: Url, patience: Patience = 60.0) -> None:
    """Copy a store to a remote folder. When repeated, it sends only missing files."""
    from vitcapr.formats.store_manifest import read_sealed
    from vitcapr.progress import Reporter
    from vitcapr.store.remote_folder import RemoteFolder
    from vitcapr.store.transfer import push as push_store

    manifest = sealed / "manifest.json" if sealed.is_dir() else sealed
    with Reporter() as reporter:
        push_store(manifest, RemoteFolder(url, patience), reporter)
    typer.echo(f"{read_sealed(manifest)['fingerprint'][:16]} is whole at {url}")


def pull(
    url: Url,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DEST]", help="Folder to write (default: its folder among the stores).")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only the chunks with rows of this split of --data.")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="manifest.json of the data set, which the store must belong to.")
    ] = None,
    arrays: Arrays = None,
    patience: Patience = 60.0,
) -> None:
    """Copy a store from a remote folder. When repeated, it fetches only missing files."""
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.pipeline.paths import stores_root
    from vitcapr.progress import Reporter
    from vitcapr.store.layout import identity_in
    from vitcapr.store.reader import open_features
    from vitcapr.store.remote_folder import RemoteFolder
    from vitcapr.store.transfer import find_remote
    from vitcapr.store.transfer import pull as pull_store
    from vitcapr.store.writer import store_folder

    if split is not None and data is None:
        raise UserError("--split without --data", remedy="give --data results/EXPERIMENT/data/manifest.json")
    remote = find_remote(RemoteFolder(url, patience))
    ids = rows = None
    if data is not None:
        manifest = read_manifest(data)
        identity = identity_in(remote.manifest)
        table = manifest.images if identity == "image_id" else manifest.captions
        ids = table[identity].tolist()
        if split is not None:
            rows = (table["split"] == split).to_numpy().nonzero()[0]
            if not len(rows):
                raise UserError(f"the data set has nothing in a split '{split}'", where=data)
    names = arrays.split(",") if arrays else None
    part = "-part" if rows is not None or names is not None else ""
    whole = store_folder(stores_root(), remote.manifest["fingerprint"])
    to = folder or whole.with_name(whole.name + part)
    with Reporter() as reporter:
        sealed = pull_store(remote, to, reporter, arrays=names, ids=ids, rows=rows)
    with open_features(sealed) as store:
        typer.echo(str(store))
        if store.partial:
            for name, array in store.items():
                here = ", ".join(f"{first}-{last - 1}" for first, last in array.rows_here)
                typer.echo(f"  only a part: rows {here} of '{name}'")
    typer.echo(f"sealed: {sealed}")
