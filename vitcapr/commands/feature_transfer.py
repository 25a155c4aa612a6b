"""``vitcapr features push`` and ``pull``: copy sealed stores to and from remote folders."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vitcapr.commands.main import Arrays, Sealed
from vitcapr.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from vitcapr.progress import Reporter
    from vitcapr.store.transfer import Advance

Url = Annotated[str, typer.Argument(help="A folder, sftp://HOST/PATH, s3://BUCKET/PATH, gs://..., http://...")]
Data = Annotated[Path | None, typer.Option("--data", help="manifest.json of the data set, for its splits.")]
Attempts = Annotated[int, typer.Option(min=1, help="Number of attempts per file.")]
Patience = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait until an answer begins.")]


def push(
    sealed: Sealed,
    url: Url,
    data: Data = None,
    attempts: Attempts = 5,
    patience: Patience = 60.0,
) -> None:
    """Copy a store to a remote folder. When repeated, it sends only missing files."""
    from vitcapr.formats.store_manifest import read_sealed
    from vitcapr.progress import Reporter
    from vitcapr.store.reader import open_features
    from vitcapr.store.remote_folder import RemoteFolder
    from vitcapr.store.transfer import push as push_store

    manifest = sealed / "manifest.json" if sealed.is_dir() else sealed
    content = read_sealed(manifest)
    splits = None
    if data is not None:
        with open_features(manifest) as store:
            splits = _rows_of_splits(data, store.ids, store.identity)
    with Reporter() as reporter, _chunks(reporter, "push", content, None) as advance:
        push_store(manifest, RemoteFolder(url, attempts, patience=patience), advance, splits)
    typer.echo(f"{content['fingerprint'][:16]} is whole at {url}")


def pull(
    url: Url,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DEST]", help="Folder to write (default: its folder among the stores).")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only the chunks that hold rows of this split.")] = None,
    data: Data = None,
    arrays: Arrays = None,
    attempts: Attempts = 5,
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

    remote = find_remote(RemoteFolder(url, attempts, patience=patience))
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
    target = folder or whole.with_name(whole.name + part)
    with Reporter() as reporter, _chunks(reporter, "pull", remote.manifest, rows) as advance:
        sealed = pull_store(remote, target, advance, rows=rows, arrays=names, say=reporter.line)
    with open_features(sealed) as store:
        typer.echo(str(store))
        if store.partial:
            for name, array in store.items():
                here = ", ".join(f"{first}-{last - 1}" for first, last in array.rows_here)
                typer.echo(f"  only a part: rows {here} of '{name}'")
    typer.echo(f"sealed: {sealed}")


@contextmanager
def _chunks(
    reporter: "Reporter", what: str, manifest: Mapping[str, Any], rows: "np.ndarray | None"
) -> "Iterator[Advance]":
    """Report progress in chunks, with the rate of the transferred bytes."""
    count = len(next(iter(manifest["arrays"].values()))["checksums"])
    if rows is not None:
        count = len(set((rows // manifest["chunk"]).tolist()))
    start, moved, of_chunks = time.monotonic(), 0, 0
    with reporter.track(what, count, "chunks") as tracker:

        def advance(chunks: int, size: int) -> None:
            nonlocal moved, of_chunks
            moved, of_chunks = moved + size, of_chunks + (size > 0)
            rate = moved / 1e6 / max(time.monotonic() - start, 1e-9)
            tracker.advance(chunks, f"{moved / 1e6:.1f} MB at {rate:.1f} MB/s")

        yield advance
    reporter.line(f"{what}: {of_chunks} of {count} chunks moved, {moved / 1e6:.1f} MB; the others were there")


def _rows_of_splits(manifest: Path, ids: list[str], identity: str) -> "dict[str, np.ndarray]":
    """The rows of every split that is not empty."""
    import numpy as np

    from vitcapr.formats.manifest import SPLITS, read_manifest
    from vitcapr.store.layout import row_ranges

    data = read_manifest(manifest)
    table = data.images if identity == "image_id" else data.captions
    if table[identity].tolist() != ids:
        raise UserError("the store is of other images or captions than this data set", where=manifest)
    rows = {split: np.flatnonzero(table["split"].to_numpy() == split) for split in SPLITS}
    return {split: found for split, found in rows.items() if row_ranges(found)}
