"""``vitcapr features push`` and ``pull``: copy sealed stores to and from remote folders."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import Arrays, Sealed

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
    whole = store_folder(stores_root(), remote.manifest["fingerprint"])
    to = folder or whole.with_name(whole.name + ("-part" if arrays else ""))
    with Reporter() as reporter:
        sealed = pull_store(remote, to, reporter, arrays.split(",") if arrays else None)
    with open_features(sealed) as store:
        typer.echo(str(store))
    typer.echo(f"sealed: {sealed}")
