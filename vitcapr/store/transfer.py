"""Sealed stores that travel: to and from any place, every file compared with its checksum.

A store that travels is one folder, wherever it is::

    features.zarr/          the group, as in results/stores
    checksums/<chunk>.json  the checksums of a chunk, as extraction records them
    splits.json             the rows of each split, if its pusher gave a data set
    manifest.json           the seal, written last: without it there is no store yet

So a half-pushed store is not taken for a whole one, and a transfer continues with the files that are not there.
"""

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, read_json, readable_json, sha256_bytes, sha256_file, write_bytes
from vitcapr.formats.store_manifest import SCALE, check_sealed, read_sealed, write_sealed
from vitcapr.progress import Reporter
from vitcapr.store.check import SealedFile, check_store, sealed_files
from vitcapr.store.layout import GROUP, checksum_path, chunks_in, decode_ids, identity_in, layouts_in, row_ranges
from vitcapr.store.remote_folder import RemoteFolder
from vitcapr.store.writer import StoreWriter, claimed

MANIFEST = "manifest.json"
SPLITS = "splits.json"
MOST_OF_A_LIST = 64 * 2**20
"""Bytes of a manifest or of the rows of splits: a million checksums."""
MOST_OF_METADATA = 2**20
MOST_OF_A_FILE = 2**31
"""Bytes of a chunk, and of the table of ids."""
_TOGETHER = 8
"""Files that are moved by one call of fsspec; a connection that is lost costs no more than these."""
_SPLITS = TypeAdapter(dict[str, list[tuple[int, int]]])


@dataclass(frozen=True)
class RemoteStore:
    """A sealed store in a place. ``manifest`` is the sealed one, checked."""

    place: RemoteFolder
    manifest: Mapping[str, Any]

    @property
    def identity(self) -> str:
        return identity_in(self.manifest)

    def name(self, file: SealedFile, group: Path = Path()) -> str:
        """The name in the place of a file of the group that is, or is to be, at ``group``."""
        return f"{self.manifest['store']}/{file.path.relative_to(group).as_posix()}"

    def ids(self) -> list[str]:
        """The id of each row."""
        table = sealed_files(self.manifest, Path())[0]
        try:
            content = self.place.read(self.name(table), table.size)
        except FileNotFoundError as error:
            raise UserError(f"'{self.name(table)}' is missing from the store", where=self.place.url) from error
        if sha256_bytes(content) != table.checksum:
            raise UserError("the ids of the store's rows are not those that were sealed", where=self.place.url)
        try:
            return decode_ids(np.frombuffer(content, np.uint8).reshape(self.manifest[self.identity]["shape"]))
        except ValueError as error:
            raise UserError("the ids of the store's rows are not text", where=self.place.url) from error

    def split_rows(self, split: str) -> np.ndarray:
        """The rows of ``split``, from the ``splits.json`` that was pushed with the store."""
        rows = self.manifest[self.identity]["shape"][0]
        try:
            ranges = _SPLITS.validate_json(self.place.read(SPLITS, MOST_OF_A_LIST))[split]
            if not all(0 <= first < last <= rows for first, last in ranges):
                raise UserError(f"the split '{split}' has rows that the store has not", where=self.place.url)
        except (FileNotFoundError, ValidationError, KeyError) as error:
            what = {
                FileNotFoundError: "the store came without its splits",
                KeyError: f"the store knows no split '{split}'",
            }.get(type(error), "the store's splits.json is damaged")
            remedy = "give the data set with --data results/EXPERIMENT/data/manifest.json"
            raise UserError(what, where=self.place.url, remedy=remedy) from error
        return np.concatenate([np.arange(0), *(np.arange(first, last) for first, last in ranges)])


def find_remote(place: RemoteFolder) -> RemoteStore:
    """The sealed store in ``place``, wherever its manifest says that the group is."""
    try:
        content = json.loads(place.read(MANIFEST, MOST_OF_A_LIST))
    except FileNotFoundError as error:
        what, remedy = "no manifest.json there", "check the address, or wait until the store is pushed whole"
        raise UserError(what, where=place.url, remedy=remedy) from error
    except (ValueError, RecursionError) as error:
        raise UserError("its manifest.json is not JSON", where=place.url) from error
    store = RemoteStore(place, check_sealed(content, place.url))
    for file in sealed_files(store.manifest, Path()):
        if file.size > MOST_OF_A_FILE:
            what = f"a chunk of '{file.array}' would have {file.size} bytes, more than {MOST_OF_A_FILE}"
            raise UserError(what, where=place.url)
    return store


def push(sealed: Path, place: RemoteFolder, report: Reporter, splits: Mapping[str, np.ndarray] | None = None) -> None:
    """Copy the sealed store to ``place``; files that are there with their size are not sent again.

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
    check_store(manifest, group, sealed)
    there = place.sizes()
    if f"{GROUP}/zarr.json" in there:
        _refuse_another(place, manifest["fingerprint"])
    seal = readable_json({**manifest, "store": GROUP}).encode()
    if MANIFEST in there and place.read(MANIFEST, MOST_OF_A_LIST) != seal:
        place.remove(MANIFEST)
    remote = RemoteStore(place, {**manifest, "store": GROUP})
    metadata = [group / "zarr.json", *(group / name / "zarr.json" for name in (*manifest["arrays"], remote.identity))]
    place.put({f"{GROUP}/{path.relative_to(group).as_posix()}": path for path in metadata})

    def send(files: Sequence[SealedFile]) -> None:
        for file in files:
            if problem := file.problem():
                what = f"chunk {file.index} of '{file.array}' {problem}"
                raise UserError(what, where=file.path, remedy="see vitcapr features verify")
        place.put({remote.name(file, group): file.path for file in files})

    files = sealed_files(manifest, group)
    _move(report, "push", files, [file for file in files if there.get(remote.name(file, group)) != file.size], send)
    for path, content in _records(manifest, Path()).items():
        if there.get(path.as_posix()) != len(content):
            place.write(path.as_posix(), content)
    if splits is not None:
        place.write(SPLITS, readable_json({name: row_ranges(rows) for name, rows in splits.items()}).encode())
    place.write(MANIFEST, seal)


def pull(
    remote: RemoteStore,
    folder: Path,
    report: Reporter,
    *,
    rows: np.ndarray | None = None,
    arrays: Collection[str] | None = None,
) -> Path:
    """Copy the store, or the chunks of some rows and arrays, into ``folder``; files that are there are not fetched.

    Extraction can use and continue a whole store. A part carries no record of finished chunks, so that extraction never
    takes it for more than it is; what was pulled to ``folder`` before stays part of it.

    Args:
        rows: (n,) the rows to copy; None for all.
        arrays: their names; None for all. An int8 array brings its scales.

    Returns:
        The path of the manifest.
    """
    manifest = remote.manifest
    layouts = _choose(remote, arrays)
    chunks = chunks_in(manifest)
    needed = set(chunks) if rows is None else set((np.asarray(rows) // manifest["chunk"]).tolist())
    writer = StoreWriter(folder, layouts)

    def fetch(files: Sequence[SealedFile]) -> None:
        with ExitStack() as stack:
            here = {file: stack.enter_context(atomic_path(file.path)) for file in files}
            try:
                remote.place.get({remote.name(file, writer.group): (path, file.size) for file, path in here.items()})
            except FileNotFoundError as error:
                raise UserError("a chunk is missing from the store", where=remote.place.url) from error
            for file, path in here.items():
                if sha256_file(path) != file.checksum:
                    what = f"'{remote.name(file, writer.group)}' is not what was sealed"
                    remedy = "delete it there and push the store again from a sound copy, then run the same command"
                    raise UserError(what, where=remote.place.url, remedy=remedy)

    with claimed(folder, chunks, report.line):
        before = _earlier(folder, manifest["fingerprint"])
        writer.begin(manifest["attributes"], remote.ids(), remote.identity)
        manifest = {**manifest, "attributes": writer.attributes, "store": GROUP}
        files = [
            file for file in sealed_files(manifest, writer.group) if file.array in layouts and file.index in needed
        ]
        _move(report, "pull", files, [file for file in files if file.problem()], fetch)
        if len(needed) == len(chunks) and layouts.keys() == manifest["arrays"].keys():
            for path, content in _records(manifest, folder).items():
                write_bytes(path, content)
        else:
            manifest = _part(manifest, layouts, needed, before)
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


def _records(manifest: Mapping[str, Any], folder: Path) -> dict[Path, bytes]:
    """What extraction writes for each finished chunk, by path."""
    checksums = {name: array["checksums"] for name, array in manifest["arrays"].items()}
    return {
        checksum_path(folder, index): readable_json({name: one[index] for name, one in checksums.items()}).encode()
        for index in chunks_in(manifest)
    }


def _part(
    manifest: Mapping[str, Any], arrays: Collection[str], chunks: Collection[int], before: Mapping[str, Any]
) -> dict[str, Any]:
    """The manifest with the chunks that are here, now or from ``before``; the checksum of any other is None."""
    kept: dict[str, Any] = {}
    for name, array in manifest["arrays"].items():
        had = before.get(name, {}).get("checksums", [None] * len(array["checksums"]))
        here = [
            digest if had[index] == digest or (name in arrays and index in chunks) else None
            for index, digest in enumerate(array["checksums"])
        ]
        if any(here):
            kept[name] = {**array, "checksums": here}
    whole = kept == manifest["arrays"]
    return {**manifest, "arrays": kept, **({} if whole else {"partial": True})}


def _earlier(folder: Path, fingerprint: str) -> Mapping[str, Any]:
    """The arrays of which ``folder`` holds chunks already."""
    group = folder / GROUP / "zarr.json"
    if group.is_file() and read_json(group)["attributes"].get("fingerprint") != fingerprint:
        raise UserError("another store is there", where=folder, remedy="pull to another folder")
    if not (folder / MANIFEST).is_file():
        return {}
    arrays: Mapping[str, Any] = read_sealed(folder / MANIFEST)["arrays"]
    return arrays


def _refuse_another(place: RemoteFolder, fingerprint: str) -> None:
    try:
        there = json.loads(place.read(f"{GROUP}/zarr.json", MOST_OF_METADATA))["attributes"]["fingerprint"]
    except (ValueError, KeyError, TypeError, RecursionError):
        there = None
    if there != fingerprint:
        raise UserError("another store is there", where=place.url, remedy="push to a folder of its own")
