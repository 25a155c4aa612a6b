"""Sealed stores that travel: to and from any place, chunk by chunk, each compared with its checksum.

A store that travels is one folder, wherever it is::

    features.zarr/          the group, as in results/stores
    checksums/<chunk>.json  written once the chunk is there
    splits.json             the rows of each split, if its pusher gave a data set
    manifest.json           the seal, written last: without it there is no store yet

So a half-pushed store is not taken for a whole one, and a transfer continues with the chunks that are not there.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, read_json, readable_json, sha256_bytes, sha256_file, write_json
from vitcapr.formats.store_manifest import IDENTITIES, SCALE, check_sealed, read_sealed, write_sealed
from vitcapr.store.layout import CHECKSUMS, GROUP, ArrayLayout, checksum_path, chunk_path, decode_ids, row_ranges
from vitcapr.store.remote_folder import RemoteFolder
from vitcapr.store.writer import StoreWriter, claimed

MANIFEST = "manifest.json"
SPLITS = "splits.json"
MOST_OF_A_LIST = 64 * 2**20
"""Bytes of a manifest or of the rows of splits: a million checksums."""
MOST_OF_METADATA = 2**20
MOST_OF_A_CHUNK = 2**31
"""Bytes of a chunk's file, and of the table of ids."""
_TOGETHER = 4
"""Chunks that are moved by one call of fsspec; a connection that is lost costs no more than these."""
_SPLITS = TypeAdapter(dict[str, list[tuple[int, int]]])

Advance = Callable[[int, int], None]
"""Receives a number of chunks that are done and the bytes that were moved for them."""


@dataclass(frozen=True)
class RemoteStore:
    """A sealed store in a place. ``manifest`` is the sealed one, checked."""

    place: RemoteFolder
    manifest: Mapping[str, Any]

    @property
    def identity(self) -> str:
        return identity_in(self.manifest)

    def path(self, path: Path) -> str:
        """The name in the place of a path in the Zarr group."""
        return f"{self.manifest['store']}/{path.as_posix()}"

    def layouts(self, names: Iterable[str]) -> dict[str, ArrayLayout]:
        """The layouts of these arrays, whose metadata are those that were sealed."""
        layouts = {}
        for name in names:
            if name not in self.manifest["arrays"]:
                have = ", ".join(self.manifest["arrays"])
                raise UserError(f"the store has no array '{name}'", where=self.place.url, remedy=f"it has {have}")
            sealed = self.manifest["arrays"][name]
            try:
                metadata = json.loads(self._read(Path(name, "zarr.json"), MOST_OF_METADATA))
                layout = ArrayLayout.from_metadata(metadata)
            except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
                raise UserError(f"the metadata of '{name}' are not those of an array", where=self.place.url) from error
            stated = (list(layout.shape), layout.chunk, layout.dtype)
            if stated != (sealed["shape"], self.manifest["chunk"], sealed["dtype"]):
                raise UserError(f"the metadata of '{name}' are not those that were sealed", where=self.place.url)
            self._check_size(layout.chunk_bytes, f"a chunk of '{name}'")
            layouts[name] = layout
        return layouts

    def ids(self) -> list[str]:
        """The id of each row."""
        sealed = self.manifest[self.identity]
        size = math.prod(sealed["shape"])
        self._check_size(size, "the table of ids")
        content = self._read(chunk_path(Path(self.identity), 0, 2), size)
        if sha256_bytes(content) != sealed["checksum"]:
            raise UserError("the ids of the store's rows are not those that were sealed", where=self.place.url)
        try:
            return decode_ids(np.frombuffer(content, np.uint8).reshape(sealed["shape"]))
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

    def _check_size(self, size: int, what: str) -> None:
        if size > MOST_OF_A_CHUNK:
            raise UserError(f"{what} would have {size} bytes, more than {MOST_OF_A_CHUNK}", where=self.place.url)

    def _read(self, path: Path, limit: int) -> bytes:
        try:
            return self.place.read(self.path(path), limit)
        except FileNotFoundError as error:
            raise UserError(f"'{self.path(path)}' is missing from the store", where=self.place.url) from error


def find_remote(place: RemoteFolder) -> RemoteStore:
    """The sealed store in ``place``, wherever its manifest says that the group is."""
    try:
        content = json.loads(place.read(MANIFEST, MOST_OF_A_LIST))
    except FileNotFoundError as error:
        what, remedy = "no manifest.json there", "check the address, or wait until the store is pushed whole"
        raise UserError(what, where=place.url, remedy=remedy) from error
    except (ValueError, RecursionError) as error:
        raise UserError("its manifest.json is not JSON", where=place.url) from error
    return RemoteStore(place, check_sealed(content, place.url))


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
    arrays, identity = manifest["arrays"], identity_in(manifest)
    ids = chunk_path(Path(identity), 0, 2)
    _check_file(group / ids, manifest[identity]["checksum"])
    metadata = [Path("zarr.json"), *(Path(name, "zarr.json") for name in (*arrays, identity)), ids]
    place.put({f"{GROUP}/{path.as_posix()}": group / path for path in metadata})

    for some in _together(range(_chunks(manifest))):
        files: dict[str, Path] = {}
        records: dict[str, bytes] = {}
        for index in some:
            paths = {name: chunk_path(Path(name), index, len(array["shape"])) for name, array in arrays.items()}
            here = {f"{GROUP}/{path.as_posix()}": group / path for path in paths.values()}
            expected = {name: array["checksums"][index] for name, array in arrays.items()}
            name, record = f"{CHECKSUMS}/{checksum_path(Path(), index).name}", readable_json(expected).encode()
            if _read_or_none(place, name) == record and all(
                place.size(there) == path.stat().st_size for there, path in here.items()
            ):
                advance(1, 0)
                continue
            for array, path in paths.items():
                _check_file(group / path, expected[array])
            files |= here
            records[name] = record
        place.put(files)
        for name, record in records.items():
            place.write(name, record)
            advance(1, sum(path.stat().st_size for path in files.values()) // len(records))
    if splits is not None:
        place.write(SPLITS, readable_json({name: row_ranges(rows) for name, rows in splits.items()}).encode())
    place.write(MANIFEST, seal)


def pull(
    remote: RemoteStore,
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
        rows: (n,) the rows to copy; None for all.
        arrays: their names; None for all. An int8 array brings its scales.
        say: receives a line if another process is at the same chunks.

    Returns:
        The path of the manifest.
    """
    manifest = remote.manifest
    scales = [name + SCALE for name in arrays or () if name + SCALE in manifest["arrays"]]
    layouts = remote.layouts(manifest["arrays"] if arrays is None else [*arrays, *scales])
    chunks = range(_chunks(manifest))
    needed = list(chunks) if rows is None else np.unique(np.asarray(rows) // manifest["chunk"]).tolist()
    whole = len(needed) == len(chunks) and layouts.keys() == manifest["arrays"].keys()
    writer = StoreWriter(folder, layouts)
    with claimed(folder, chunks, say):
        before = _earlier(folder, manifest["fingerprint"])
        writer.begin(manifest["attributes"], remote.ids(), remote.identity)
        manifest = {**manifest, "attributes": writer.attributes}
        for some in _together(needed):
            missing: dict[int, dict[Path, tuple[int, str]]] = {}
            for index in some:
                for name, layout in layouts.items():
                    path, expected = chunk_path(Path(name), index, len(layout.shape)), manifest["arrays"][name]
                    if not _is_sound(writer.group / path, expected["checksums"][index]):
                        facts = (layout.chunk_bytes, expected["checksums"][index])
                        missing.setdefault(index, {})[path] = facts
            _fetch(remote, writer.group, {path: facts for files in missing.values() for path, facts in files.items()})
            for index in some:
                if whole:
                    digests = {name: manifest["arrays"][name]["checksums"][index] for name in layouts}
                    write_json(checksum_path(folder, index), digests)
                advance(1, sum(size for size, _ in missing.get(index, {}).values()))
        part = {**manifest, "store": GROUP} if whole else _part(manifest, layouts, needed, before)
        write_sealed(folder / MANIFEST, part)
    return folder / MANIFEST


def identity_in(manifest: Mapping[str, Any]) -> str:
    return next(name for name in IDENTITIES if name in manifest)


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
    """The arrays of which ``folder`` holds chunks already."""
    group = folder / GROUP / "zarr.json"
    if group.is_file() and read_json(group)["attributes"].get("fingerprint") != fingerprint:
        raise UserError("another store is there", where=folder, remedy="pull to another folder")
    if not (folder / MANIFEST).is_file():
        return {}
    arrays: Mapping[str, Any] = read_sealed(folder / MANIFEST)["arrays"]
    return arrays


def _fetch(remote: RemoteStore, group: Path, files: Mapping[Path, tuple[int, str]]) -> None:
    """Copy files of the group, path -> size and sha256, whole or not at all."""
    with ExitStack() as stack:
        here = {path: stack.enter_context(atomic_path(group / path)) for path in files}
        left = list(files)
        for _ in range(2):  # What differs once may have been garbled on the way.
            try:
                remote.place.get({remote.path(path): (here[path], files[path][0]) for path in left})
            except FileNotFoundError as error:
                raise UserError("a chunk is missing from the store", where=remote.place.url) from error
            left = [path for path in left if not _is_sound(here[path], files[path][1])]
            if not left:
                return
            for path in left:
                here[path].unlink(missing_ok=True)
        remedy = "push the store again from a sound copy, then run the same command: what has arrived is kept"
        raise UserError(f"'{remote.path(left[0])}' is not what was sealed", where=remote.place.url, remedy=remedy)


def _is_sound(path: Path, checksum: str) -> bool:
    return path.is_file() and sha256_file(path) == checksum


def _check_file(path: Path, checksum: str) -> None:
    if not _is_sound(path, checksum):
        raise UserError("a chunk here is missing or damaged", where=path, remedy="see vitcapr features verify")


def _refuse_another(place: RemoteFolder, fingerprint: str) -> None:
    present = _read_or_none(place, f"{GROUP}/zarr.json")
    if present is None:
        return
    try:
        there = json.loads(present)["attributes"]["fingerprint"]
    except (ValueError, KeyError, TypeError, RecursionError):
        there = None
    if there != fingerprint:
        raise UserError("another store is there", where=place.url, remedy="push to a folder of its own")


def _read_or_none(place: RemoteFolder, name: str, limit: int = MOST_OF_METADATA) -> bytes | None:
    try:
        return place.read(name, limit)
    except FileNotFoundError:
        return None


def _together(chunks: Collection[int]) -> Iterator[list[int]]:
    numbers = list(chunks)
    for first in range(0, len(numbers), _TOGETHER):
        yield numbers[first : first + _TOGETHER]


def _chunks(manifest: Mapping[str, Any]) -> int:
    return len(next(iter(manifest["arrays"].values()))["checksums"])
