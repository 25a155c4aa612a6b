"""Sealed stores that travel: to and from any place, chunk by chunk, each compared with its checksum.

A store that travels is one folder, wherever it is::

    features.zarr/          the group, as in results/stores
    checksums/<chunk>.json  written once the chunk is there
    splits.json             the rows of each split, if its pusher gave a data set
    manifest.json           the seal, written last: without it there is no store yet

So a half-pushed store is not taken for a whole one, and a transfer continues with the chunks that are not there.
"""

import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import read_json, readable_json, sha256_bytes, sha256_file, write_bytes, write_json
from vitcapr.formats.store_manifest import SCALE, read_sealed, write_sealed
from vitcapr.store.layout import (
    CHECKSUMS,
    GROUP,
    checksum_path,
    chunk_path,
)
from vitcapr.store.remote import (
    MANIFEST,
    MOST_OF_A_LIST,
    MOST_OF_METADATA,
    SPLITS,
    Remote,
    identity_of,
    name_in,
)
from vitcapr.store.remote_folder import RemoteFolder
from vitcapr.store.writer import StoreWriter, claimed

THREADS = 4
"""Chunks on their way at once; each is held in memory whole."""

Advance = Callable[[int, int], None]
"""Told the number of chunks that are done and the bytes that were moved for them."""


def push(sealed: Path, place: RemoteFolder, advance: Advance, splits: Mapping[str, np.ndarray] | None = None) -> None:
    """Copy the sealed store to ``place``; chunks that are recorded there with the same checksum are not sent again.

    Args:
        splits: the rows of each split, to go with the store.

    Raises:
        UserError: the place cannot be written or holds another store, or the store here is partial or damaged.
    """
    if place.read_only:
        raise UserError("cannot write there", where=place.url, remedy="http can be pulled from only; push over ssh")
    manifest = read_sealed(sealed)
    if manifest.get("partial"):
        raise UserError("the store is incomplete", where=sealed, remedy="pull all of it before it is pushed on")
    group = (sealed.parent / manifest["store"]).resolve()
    _refuse_another(place, manifest["fingerprint"])
    seal = readable_json({**manifest, "store": GROUP}).encode()
    if _read_or_none(place, MANIFEST, MOST_OF_A_LIST) not in (None, seal):
        place.remove(MANIFEST)
    arrays, identity = manifest["arrays"], identity_of(manifest)
    for name in ("", *(f"{array}/" for array in (*arrays, identity))):
        place.write(f"{GROUP}/{name}zarr.json", (group / f"{name}zarr.json").read_bytes())
    ids = chunk_path(Path(identity), 0, 2)
    place.write(name_in(GROUP, ids), _verified(group / ids, manifest[identity]["checksum"]))

    def send(index: int) -> int:
        expected = {name: array["checksums"][index] for name, array in arrays.items()}
        paths = {name: chunk_path(Path(name), index, len(array["shape"])) for name, array in arrays.items()}
        record = f"{CHECKSUMS}/{checksum_path(Path(), index).name}"
        if _read_or_none(place, record) == readable_json(expected).encode() and all(
            place.size(name_in(GROUP, path)) == (group / path).stat().st_size for path in paths.values()
        ):
            return 0
        sent = 0
        for name, path in paths.items():
            content = _verified(group / path, expected[name])
            place.write(name_in(GROUP, path), content)
            sent += len(content)
        place.write(record, readable_json(expected).encode())
        return sent

    _each_chunk(range(_chunks(manifest)), send, advance)
    if splits is not None:
        place.write(SPLITS, readable_json({name: ranges_of(rows) for name, rows in splits.items()}).encode())
    place.write(MANIFEST, seal)


def pull(
    remote: Remote,
    folder: Path,
    advance: Advance,
    *,
    rows: np.ndarray | None = None,
    arrays: Collection[str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Copy the store, or the chunks of some rows and arrays, into ``folder``; chunks that are there are not fetched.

    A whole store can be continued by extraction and the other way round. A part carries no record of finished chunks,
    so that extraction never takes it for more than it is; what was pulled to ``folder`` before stays part of it.

    Args:
        rows: (n,) the rows wanted; None for all.
        arrays: their names; None for all. An int8 array brings its scales.
        say: is told if another process is at the same chunks.

    Returns:
        The path of the manifest.

    Raises:
        UserError: what comes is not what was sealed, or there is no room.
    """
    manifest = remote.manifest
    scales = [name + SCALE for name in arrays or () if name + SCALE in manifest["arrays"]]
    layouts = remote.layouts(manifest["arrays"] if arrays is None else [*arrays, *scales])
    chunks = range(_chunks(manifest))
    wanted = list(chunks) if rows is None else np.unique(np.asarray(rows) // manifest["chunk"]).tolist()
    whole = len(wanted) == len(chunks) and layouts.keys() == manifest["arrays"].keys()
    writer = StoreWriter(folder, layouts)

    def fetch(index: int) -> int:
        fetched = 0
        for name, layout in layouts.items():
            expected = manifest["arrays"][name]["checksums"][index]
            path = chunk_path(Path(name), index, len(layout.shape))
            here = writer.group / path
            if not (here.is_file() and sha256_file(here) == expected):
                content = _fetched(remote, name_in(remote.group, path), expected, layout.chunk_bytes)
                write_bytes(here, content)
                fetched += len(content)
        if whole:
            write_json(
                checksum_path(folder, index), {name: manifest["arrays"][name]["checksums"][index] for name in layouts}
            )
        return fetched

    with claimed(folder, chunks, say):
        before = _earlier(folder, manifest["fingerprint"])
        writer.begin(manifest["attributes"], remote.ids(), remote.identity)
        manifest = {**manifest, "attributes": writer.attributes}
        _each_chunk(wanted, fetch, advance)
        write_sealed(
            folder / MANIFEST, {**manifest, "store": GROUP} if whole else _part(manifest, layouts, wanted, before)
        )
    return folder / MANIFEST


def ranges_of(rows: np.ndarray) -> list[list[int]]:
    """``[0, 1, 2, 7]`` -> ``[[0, 3], [7, 8]]``: the increasing ``rows`` as ranges, ends excluded."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    return [[int(part[0]), int(part[-1]) + 1] for part in np.split(rows, breaks) if part.size]


def _part(
    manifest: Mapping[str, Any], arrays: Iterable[str], chunks: Collection[int], before: Mapping[str, Any]
) -> dict[str, Any]:
    """The manifest with the chunks that are here, now or from ``before``; the checksum of any other is None."""
    kept: dict[str, Any] = {}
    for name, array in manifest["arrays"].items():
        had = before.get(name, {}).get("checksums", [None] * len(array["checksums"]))
        here = [
            digest if had[index] == digest or (name in arrays and index in set(chunks)) else None
            for index, digest in enumerate(array["checksums"])
        ]
        if any(here):
            kept[name] = {**array, "checksums": here}
    whole = kept == manifest["arrays"]
    return {**manifest, "store": GROUP, "arrays": kept, **({} if whole else {"partial": True})}


def _earlier(folder: Path, fingerprint: str) -> Mapping[str, Any]:
    """The arrays of which ``folder`` holds chunks already.

    Raises:
        UserError: it holds another store.
    """
    group = folder / GROUP / "zarr.json"
    if group.is_file() and read_json(group)["attributes"].get("fingerprint") != fingerprint:
        raise UserError("another store is there", where=folder, remedy="pull to another folder")
    if not (folder / MANIFEST).is_file():
        return {}
    arrays: Mapping[str, Any] = read_sealed(folder / MANIFEST)["arrays"]
    return arrays


def _each_chunk(chunks: Iterable[int], work: Callable[[int], int], advance: Advance) -> None:
    """Do ``work`` for every chunk, a few at once; the first error ends it once those under way are done."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="transfer") as pool:
        running: set[Future[int]] = set()
        stopped = threading.Event()

        def unless_stopped(index: int) -> int:
            try:
                return 0 if stopped.is_set() else work(index)
            except BaseException:
                stopped.set()
                raise

        def collect(futures: Iterator[Future[int]]) -> None:
            for future in futures:
                advance(1, future.result())

        for index in chunks:
            running.add(pool.submit(unless_stopped, index))
            if len(running) >= 2 * THREADS:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                collect(iter(done))
        collect(iter(running))


def _fetched(remote: Remote, name: str, expected: str, size: int) -> bytes:
    """A chunk's file. What differs once may have been garbled on the way, so it is fetched again."""
    for _ in range(2):
        try:
            content = remote.place.read(name, size)
        except FileNotFoundError as error:
            raise UserError(f"'{name}' is missing from the store", where=remote.place.url) from error
        if sha256_bytes(content) == expected:
            return content
    remedy = "push the store again from a sound copy, then run the same command: what has arrived is kept"
    raise UserError(f"'{name}' is not what was sealed", where=remote.place.url, remedy=remedy)


def _verified(path: Path, expected: str) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        content = b""
    if sha256_bytes(content) != expected:
        raise UserError("a chunk here is missing or damaged", where=path, remedy="see vitcapr features verify")
    return content


def _refuse_another(place: RemoteFolder, fingerprint: str) -> None:
    present = _read_or_none(place, f"{GROUP}/zarr.json")
    if present is None:
        return
    try:
        found = json.loads(present)["attributes"]["fingerprint"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = None
    if found != fingerprint:
        raise UserError("another store is there", where=place.url, remedy="push to a folder of its own")


def _read_or_none(place: RemoteFolder, name: str, limit: int = MOST_OF_METADATA) -> bytes | None:
    try:
        return place.read(name, limit)
    except FileNotFoundError:
        return None


def _chunks(manifest: Mapping[str, Any]) -> int:
    return len(next(iter(manifest["arrays"].values()))["checksums"])
