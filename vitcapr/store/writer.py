"""Filling a feature store chunk by chunk, so that it can be killed at any moment and continued."""

import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import (
    canonical_json,
    read_json,
    sha256_bytes,
    write_bytes,
    write_json,
)
from vitcapr.formats.records import reading
from vitcapr.formats.store_manifest import IDENTITIES
from vitcapr.store.layout import (
    GROUP,
    STORE_NAME_LENGTH,
    ArrayLayout,
    checksum_path,
    chunk_path,
    encode_ids,
)

LOCK = "writers.lock"
TERMS = "terms"
"""The attribute with licences and sources. The fingerprint does not cover it: a store keeps that of its first
writer."""
COPIED = "copied"
"""Key in a checksum file of the rows that come from other stores. No array has this name."""


def fingerprint_of(recipe: Mapping[str, Any]) -> str:
    """sha256 of everything that decides the numbers in a store; its first 16 digits name the store's folder."""
    return sha256_bytes(canonical_json(dict(recipe)).encode("utf-8"))


def store_folder(stores: Path, fingerprint: str) -> Path:
    """Return the folder of a store.

    ``fingerprint`` may be read from a file; other text than a digest could lead to any folder.
    """
    if not re.fullmatch("[0-9a-f]{64}", fingerprint):
        raise UserError("the fingerprint of a store is not 64 hexadecimal digits", where=ascii(fingerprint)[:80])
    return stores / fingerprint[:STORE_NAME_LENGTH]


@dataclass(frozen=True)
class StoreWriter:
    """The unfinished store in ``folder``. Several processes may fill it at once, each its own chunks.

    A chunk is finished when its checksum file stands. That is written after the chunk's own files, each under a
    temporary name, forced to disk and renamed: whatever moment a process dies at, a chunk without a checksum is
    computed again and one with a checksum is whole.
    """

    folder: Path
    layouts: Mapping[str, ArrayLayout]

    @property
    def group(self) -> Path:
        return self.folder / GROUP

    @property
    def chunks(self) -> range:
        """The numbers of all chunks."""
        return range(next(iter(self.layouts.values())).chunks)

    @property
    def size(self) -> int:
        """Rows in a chunk."""
        return next(iter(self.layouts.values())).chunk

    def begin(self, attributes: Mapping[str, Any]) -> None:
        """Write the metadata, the same bytes from every task.

        A store that has the same attributes with other ``TERMS`` keeps its own.
        """
        files = zarr_metadata(self.layouts, attributes)
        group = files.pop("zarr.json")
        self._write_all(files)
        if {**self.attributes, TERMS: None} != {**attributes, TERMS: None}:
            self._write_all({"zarr.json": group})

    def write_ids(self, ids: Iterable[Collection[str]], identity: str) -> np.ndarray:
        """Write the table of the ids of all rows, and return it.

        Args:
            ids: see :func:`encode_ids`.
            identity: ``image_id`` or ``caption_id``.
        """
        table = encode_ids(ids)
        layout = ArrayLayout(table.shape, len(table), "uint8", (identity.removesuffix("_id"), "byte"))
        files = zarr_metadata({identity: layout}, {})
        ids_path = chunk_path(Path(identity), 0, 2).as_posix()
        self._write_all({f"{identity}/zarr.json": files[f"{identity}/zarr.json"], ids_path: table.tobytes()})
        return table

    def _write_all(self, files: Mapping[str, bytes]) -> None:
        """Write the files of the group that do not have these bytes."""
        for name, content in files.items():
            path = self.group / name
            if not path.is_file() or path.read_bytes() != content:
                write_bytes(path, content)

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the store; empty if it is not begun or its metadata cannot be read."""
        try:
            attributes = read_json(self.group / "zarr.json").get("attributes")
        except (UserError, AttributeError):
            return {}
        return attributes if isinstance(attributes, dict) else {}

    def checksums(self, index: int) -> dict[str, str] | None:
        """Array name -> sha256 of chunk ``index`` if it is finished and its files have their size, else None."""
        recorded = checksum_path(self.folder, index)
        if not recorded.is_file():
            return None
        for name, layout in self.layouts.items():
            path = chunk_path(self.group / name, index, len(layout.shape))
            if not path.is_file() or path.stat().st_size != layout.chunk_bytes:
                return None
        checksums, names = read_json(recorded), self.layouts.keys()
        if not isinstance(checksums, dict):
            raise UserError("not a record of checksums", where=recorded, remedy="delete it and extract or pull again")
        return {name: str(checksums[name]) for name in names} if checksums.keys() >= names else None

    def all_checksums(self, chunks: range) -> dict[str, list[str]]:
        """Array name -> sha256 of each of these chunks, which are all finished."""
        recorded = [self.checksums(index) for index in chunks]
        if None in recorded:
            raise RuntimeError(f"chunk {chunks[recorded.index(None)]} is not finished")
        return {name: [digests[name] for digests in recorded if digests] for name in self.layouts}

    def write(
        self,
        index: int,
        arrays: Mapping[str, np.ndarray],
        copied: Mapping[str, list[list[int]]] | None = None,
    ) -> None:
        """Write chunk ``index`` of every array, each ``(chunk, ...)`` of the layout's dtype.

        Args:
            copied: the rows that come from other stores, by the name of the store.
        """
        checksums = {}
        for name, layout in self.layouts.items():
            numbers = np.ascontiguousarray(arrays[name], np.dtype(layout.dtype).newbyteorder("<"))
            content = numbers.reshape(-1).view(np.uint8).data
            if len(content) != layout.chunk_bytes:
                raise ValueError(f"chunk of '{name}': {len(content)} bytes instead of {layout.chunk_bytes}")
            checksums[name] = sha256_bytes(content)
            write_bytes(chunk_path(self.group / name, index, len(layout.shape)), content)
        write_json(checksum_path(self.folder, index), {**checksums, COPIED: copied} if copied else checksums)

    def space_warning(self, chunks: int) -> str | None:
        """Return a line for the log if the disk has less room than ``chunks`` chunks take.

        Some disks compress, so it is no error.
        """
        needed = chunks * sum(layout.chunk_bytes for layout in self.layouts.values())
        free = shutil.disk_usage(self.folder).free
        if needed <= free:
            return None
        return f"warning: {needed / 1e9:.1f} GB to write, {free / 1e9:.1f} GB free at {self.folder}"


def zarr_metadata(layouts: Mapping[str, ArrayLayout], attributes: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the metadata of a group and of its arrays, as zarr writes them, by the names of the files."""
    import zarr

    files: dict[str, Any] = {}
    group = zarr.create_group(zarr.storage.MemoryStore(files), attributes=json.loads(canonical_json(dict(attributes))))
    for name, layout in layouts.items():
        group.create_array(
            name,
            shape=layout.shape,
            chunks=(layout.chunk, *layout.shape[1:]),
            dtype=layout.dtype,
            compressors=None,
            filters=None,
            fill_value=0,
            dimension_names=layout.axes,
        )
    return {name: buffer.to_bytes() for name, buffer in files.items()}


def read_layouts(folder: Path) -> dict[str, ArrayLayout]:
    """Return the feature arrays of a store, by name; empty if it was not begun."""
    if not (folder / GROUP / "zarr.json").is_file():
        return {}
    layouts = {}
    for path in sorted((folder / GROUP).glob("*/zarr.json")):
        if path.parent.name not in IDENTITIES:
            with reading(path, "the metadata of an array", "delete it, then extract or pull the store"):
                layouts[path.parent.name] = ArrayLayout.from_metadata(read_json(path))
    return layouts


def copied_rows(folder: Path, chunks: Iterable[int]) -> dict[str, list[list[int]]]:
    """Return the rows of finished chunks that come from other stores: ``[first, last + 1]`` of each run, by store."""
    copied: dict[str, list[list[int]]] = {}
    for index in chunks:
        for store, runs in read_json(checksum_path(folder, index)).get(COPIED, {}).items():
            known = copied.setdefault(store, [])
            for first, end in runs:
                if known and known[-1][1] == first:
                    known[-1][1] = end
                else:
                    known.append([first, end])
    return copied


@contextmanager
def claimed(store: Path, chunks: range, say: Callable[[str], None]) -> Iterator[None]:
    """Hold ``chunks`` of the store in folder ``store`` against all other processes; wait for those before.

    A claim is a lock on a range of bytes of one small file, a byte a chunk, so tasks that own different chunks work at
    the same time. The system lets go of it when its process ends, however it ends. NFS locks ranges of bytes across
    machines, and so does Lustre that is mounted with flock.

    Args:
        say: receives a line if this process has to wait.
    """
    descriptor = _open_lock(store)
    try:
        if chunks:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, len(chunks), chunks.start)
            except BlockingIOError:
                say(f"another process is writing the same files; waiting for it ({store})")
                fcntl.lockf(descriptor, fcntl.LOCK_EX, len(chunks), chunks.start)
        yield
    finally:
        os.close(descriptor)


def _open_lock(store: Path) -> int:
    try:
        store.mkdir(parents=True, exist_ok=True)
        return os.open(store / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            remedy = "have someone fill it who may, or name a folder of your own in VITCAPR_STORES"
            raise UserError("files are missing and you may not write here", where=store, remedy=remedy) from error
        raise


def remove_partials(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a store, if no process holds a claim on it."""
    try:
        descriptor = _open_lock(folder)
    except UserError:
        return
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for path in folder.rglob(".*.partial"):
            path.unlink(missing_ok=True)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)
