"""Sealed stores that travel: to and from any place, every file compared with its checksum.

A store that travels is one folder, wherever it is::

    features.zarr/          the group, as in results/stores
    manifest.json           the seal, written last: without it there is no store yet

So a half-pushed store is not taken for a whole one, and a transfer continues with the files that are not there.
"""

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import readable_json, write_json
from vitcapr.formats.store_manifest import SCALE, check_sealed, read_sealed, write_sealed
from vitcapr.progress import Reporter
from vitcapr.store.check import SealedFile, check_store, read_ids, sealed_files
from vitcapr.store.layout import GROUP, checksum_path, chunks_in, identity_in, layouts_in
from vitcapr.store.remote_folder import Expected, RemoteFolder
from vitcapr.store.writer import StoreWriter, claimed

MANIFEST = "manifest.json"
MOST_OF_A_LIST = 64 * 2**20
"""Bytes of a manifest: a million checksums."""
_MOST_OF_METADATA = 2**20
_MOST_OF_A_FILE = 2**31
"""Bytes of a chunk, and of the table of ids."""
_TOGETHER = 8
"""Files that are moved by one call of fsspec; a connection that is lost costs no more than these."""


@dataclass(frozen=True)
class RemoteStore:
    """A sealed store in a place. ``manifest`` is the sealed one, checked."""

    place: RemoteFolder
    manifest: Mapping[str, Any]

    def name(self, file: SealedFile, group: Path) -> str:
        """The name in the place of a file of the group that is, or is to be, at ``group``."""
        return f"{self.manifest['store']}/{file.path.relative_to(group).as_posix()}"


def find_remote(place: RemoteFolder) -> RemoteStore:
    """The sealed store in ``place``, wherever its manifest says that the group is."""
    try:
        content = json.loads(place.read(MANIFEST, MOST_OF_A_LIST))
    except FileNotFoundError as error:
        what, remedy = "no manifest.json there", "check the address, or wait until the store is pushed whole"
        raise UserError(what, where=place.url, remedy=remedy) from error
    except (ValueError, RecursionError) as error:
        raise UserError("its manifest.json is not JSON", where=place.url) from error
    check_sealed(content, place.url)
    store = RemoteStore(place, {key: value for key, value in content.items() if key != "partial"})
    for file in sealed_files(store.manifest, Path()):
        if file.size > _MOST_OF_A_FILE:
            what = f"a chunk of '{file.array}' would have {file.size} bytes, more than {_MOST_OF_A_FILE}"
            raise UserError(what, where=place.url)
    return store


def push(sealed: Path, place: RemoteFolder, report: Reporter) -> None:
    """Copy the sealed store to ``place``; files that are there with their size are not sent again.

    Raises:
        UserError: the place cannot be written or holds another store, or the store here is partial or damaged.
    """
    if place.read_only:
        raise UserError("cannot write there", where=place.url, remedy="http can be pulled from only; push over ssh")
    manifest = read_sealed(sealed)
    if manifest.get("partial"):
        raise UserError("the store is incomplete", where=sealed, remedy="pull all of it before it is pushed on")
    group = (sealed.parent / manifest["store"]).resolve()
    check_store(manifest, group, sealed)
    remote = RemoteStore(place, {**manifest, "store": GROUP})
    seal, there, attributes = readable_json(remote.manifest).encode(), place.sizes(), f"{GROUP}/zarr.json"
    quoted = f'"{manifest["fingerprint"]}"'.encode()
    if attributes in there and quoted not in place.read(attributes, _MOST_OF_METADATA):
        raise UserError("another store is there", where=place.url, remedy="push to a folder of its own")
    if MANIFEST in there and place.read(MANIFEST, MOST_OF_A_LIST) != seal:
        place.remove(MANIFEST)
        there = {}
    names = (*manifest["arrays"], identity_in(manifest))
    metadata = [group / "zarr.json", *(group / name / "zarr.json" for name in names)]
    place.put({f"{GROUP}/{path.relative_to(group).as_posix()}": path for path in metadata})

    def send(files: Sequence[SealedFile]) -> None:
        for file in files:
            if problem := file.problem():
                what = f"chunk {file.index} of '{file.array}' {problem}"
                raise UserError(what, where=file.path, remedy="see vitcapr features verify")
        place.put({remote.name(file, group): file.path for file in files})

    files = sealed_files(manifest, group)
    _move(report, "push", files, [file for file in files if there.get(remote.name(file, group)) != file.size], send)
    place.write(MANIFEST, seal)


def pull(
    remote: RemoteStore,
    folder: Path,
    report: Reporter,
    *,
    arrays: Collection[str] | None = None,
    ids: Sequence[str] | None = None,
    rows: np.ndarray | None = None,
) -> Path:
    """Copy the store, or the chunks of some rows and arrays, into ``folder``; files that are there are not fetched.

    Extraction can use and continue a whole store. A part carries no record of finished chunks, so that extraction never
    takes it for more than it is; what was pulled to ``folder`` before stays part of it.

    Args:
        arrays: their names; None for all. An int8 array brings its scales.
        ids: those of the data set, which the rows of the store must have.
        rows: (n,) the rows to copy; None for all.

    Returns:
        The path of the manifest.
    """
    layouts = _choose(remote, arrays)
    writer, chunks = StoreWriter(folder, layouts), chunks_in(remote.manifest)
    needed = set(chunks) if rows is None else set((np.asarray(rows) // remote.manifest["chunk"]).tolist())

    def fetch(files: Sequence[SealedFile]) -> None:
        remote.place.fetch(
            {remote.name(file, writer.group): Expected(file.path, file.size, file.checksum) for file in files}
        )

    with claimed(folder, chunks, report.line):
        if writer.attributes.get("fingerprint", remote.manifest["fingerprint"]) != remote.manifest["fingerprint"]:
            raise UserError("another store is there", where=folder, remedy="pull to another folder")
        table, *files = sealed_files(remote.manifest, writer.group)
        if table.problem():
            fetch([table])
        stored = read_ids(remote.manifest, writer.group)
        if ids is not None and stored != list(ids):
            raise UserError("the store is of other images or captions than this data set", where=remote.place.url)
        writer.begin(remote.manifest["attributes"], stored, identity_in(remote.manifest))
        wanted = [file for file in files if file.array in layouts and file.index in needed]
        _move(report, "pull", wanted, [file for file in wanted if file.problem()], fetch)
        manifest = {**remote.manifest, "attributes": writer.attributes, "store": GROUP}
        if any(not file.path.is_file() for file in files):
            manifest["partial"] = True
        else:
            for index in chunks:
                digests = {name: array["checksums"][index] for name, array in manifest["arrays"].items()}
                write_json(checksum_path(folder, index), digests)
        write_sealed(folder / MANIFEST, manifest)
    return folder / MANIFEST


def _choose(remote: RemoteStore, arrays: Collection[str] | None) -> dict[str, Any]:
    layouts = layouts_in(remote.manifest)
    if arrays is None:
        return layouts
    for name in arrays:
        if name not in layouts:
            remedy = f"it has {', '.join(layouts)}"
            raise UserError(f"the store has no array '{name}'", where=remote.place.url, remedy=remedy)
    return {name: layout for name, layout in layouts.items() if name.removesuffix(SCALE) in arrays or name in arrays}


def _move(
    report: Reporter,
    what: str,
    files: Sequence[SealedFile],
    missing: Sequence[SealedFile],
    move: Callable[[Sequence[SealedFile]], None],
) -> None:
    """Move the missing files, some at a time, and report the rate."""
    start, moved = time.monotonic(), 0
    with report.track(what, len(files), "files", len(files) - len(missing)) as tracker:
        for first in range(0, len(missing), _TOGETHER):
            some = missing[first : first + _TOGETHER]
            move(some)
            moved += sum(file.size for file in some)
            rate = moved / 1e6 / max(time.monotonic() - start, 1e-9)
            tracker.advance(len(some), f"{moved / 1e6:.1f} MB at {rate:.1f} MB/s")
    report.line(f"{what}: {len(missing)} of {len(files)} files moved, {moved / 1e6:.1f} MB; the others were there")
