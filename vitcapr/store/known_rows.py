"""Rows of a new store that other stores under the same root already hold.

A row is known by its digest (of the image or the caption) and by the recipe of its store: the weights, the
preprocessing, the arithmetic and the code. ``rows.npy`` beside the group holds the digests of a store's rows.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import DigestedFile, atomic_path, read_json
from vitcapr.formats.records import reading
from vitcapr.formats.store_manifest import check_attributes
from vitcapr.store.layout import GROUP, ArrayLayout, Rows, chunk_path, row_ranges
from vitcapr.store.writer import TERMS, StoreWriter, read_layouts

ROWS = "rows.npy"
_DIGEST_BYTES = 32
_NOT_COMPARED = dict.fromkeys(("fingerprint", "images_sha256", "captions_sha256", "grid", TERMS))
"""Attributes that do not say how a row is computed."""


def write_row_digests(folder: Path, rows: Rows) -> None:
    """Write the digest of each row of the store in ``folder``, unless another task has: (N, 32) uint8."""
    if len(read_row_digests(folder)) != len(rows):
        described = {"descr": "|u1", "fortran_order": False, "shape": (len(rows), _DIGEST_BYTES)}
        with atomic_path(folder / ROWS) as temporary, temporary.open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, described)
            for part in rows.digests():
                stream.write(part.data)


def read_row_digests(folder: Path) -> np.ndarray:
    """Return the digests of the rows, mapped; empty if the store has none."""
    try:
        table: np.ndarray = np.load(folder / ROWS, mmap_mode="r", allow_pickle=False)
    except Exception:  # NumPy raises almost anything at a damaged header.
        table = np.empty(0)
    sound = table.dtype == np.uint8 and table.ndim == 2 and table.shape[1] == _DIGEST_BYTES
    return table if sound else np.empty((0, _DIGEST_BYTES), np.uint8)


@dataclass(frozen=True)
class _Source(StoreWriter):
    """Another store, with the digests of its rows and the numbers of its finished chunks."""

    digests: np.ndarray
    finished: list[int]

    def find(self, digests: np.ndarray) -> np.ndarray:
        """Return the row of each digest in a finished chunk, -1 for none: (N,)."""
        there = (self.size * np.array(self.finished, np.int64)[:, None] + np.arange(self.size)).ravel()
        there = there[there < len(self.digests)]
        if not len(there):
            return np.full(len(digests), -1)
        # Two different digests seldom agree in their first eight bytes.
        known, wanted = self.digests.view(np.uint64), digests.view(np.uint64)
        there = there[~pd.Index(known[there, 0]).duplicated(keep="last")]
        row = there[pd.Index(known[there, 0]).get_indexer(wanted[:, 0])]
        return np.where((known[row] == wanted).all(axis=1), row, -1)

    def file(self, name: str, index: int) -> DigestedFile:
        """Return a finished chunk, with the digest that the store recorded."""
        layout = self.layouts[name]
        path = chunk_path(self.group / name, index, len(layout.shape))
        return DigestedFile(path, layout.chunk_bytes, (self.checksums(index) or {}).get(name, ""))

    def chunk(self, name: str, index: int) -> np.ndarray:
        """Return a chunk, mapped."""
        layout, path = self.layouts[name], self.file(name, index).path
        with reading(path, "a chunk of a store", "run the same command"):
            dtype, shape = np.dtype(layout.dtype).newbyteorder("<"), (layout.chunk, *layout.shape[1:])
            return np.memmap(path, dtype, "r", shape=shape)


@dataclass(frozen=True)
class KnownRows:
    """Sources of the rows of neighbouring chunks of a new store.

    Attributes:
        sources: the stores that hold at least one of the rows.
        source: (N,) the number of the source of each row, -1 for a row that has to be computed.
        row: (N,) the row in that source.
        chunk: rows in a chunk of the new store.
        first: the number of the first chunk.
    """

    sources: tuple[_Source, ...]
    source: np.ndarray
    row: np.ndarray
    chunk: int
    first: int

    @classmethod
    def none(cls, rows: int, chunk: int, first: int) -> Self:
        """Return that every row has to be computed."""
        return cls((), np.full(rows, -1), np.full(rows, -1), chunk, first)

    @classmethod
    def find(
        cls,
        stores: Path,
        recipe: Mapping[str, Any],
        digests: np.ndarray,
        chunk: int,
        first: int,
        new: Path,
        arrays: Mapping[str, ArrayLayout],
        say: Callable[[str], None],
    ) -> Self:
        """Look through all stores in the folder ``stores``.

        Args:
            recipe: the attributes that a store must have for its rows to be those of the new store.
            digests: (N, 32), those of the rows.
            new: the folder of the new store, with these ``arrays``.
            say: receives a line about each store that cannot be read.
        """
        sources: list[_Source] = []
        known = cls.none(len(digests), chunk, first)
        held = list(_held(stores, recipe, new, say))
        for other in sorted(held, key=lambda store: (-len(store.finished) * store.size, store.folder.name)):
            if _row_shapes(other.layouts) != _row_shapes(arrays):
                names = ", ".join(other.layouts)
                say(f"no rows are copied from {other.folder}: its arrays are {names} of other shapes")
                continue
            rows = other.find(digests)
            here = (known.source < 0) & (rows >= 0)
            if here.any():
                known.source[here], known.row[here] = len(sources), rows[here]
                sources.append(other)
        return replace(known, sources=tuple(sources))

    def without_damaged(self, chunks: Sequence[int], say: Callable[[str], None]) -> Self:
        """Leave out the rows of ``chunks`` whose source lies in a damaged chunk; they are computed."""
        source, every = self.source.copy(), np.arange(len(self.source))
        wanted = np.concatenate([every[:0], *(every[self._rows(index)] for index in chunks)])
        for number, other in enumerate(self.sources):
            rows = wanted[self.source[wanted] == number]
            for part in np.unique(self.row[rows] // other.size):
                files = (other.file(name, int(part)) for name in other.layouts)
                if problem := next((f"{file.path} {why}" for file in files if (why := file.problem())), None):
                    say(f"no rows are copied from this chunk: {problem}")
                    source[rows[self.row[rows] // other.size == part]] = -1
        return replace(self, source=source)

    def missing(self, index: int) -> np.ndarray:
        """Return the rows of chunk ``index`` that have to be computed, increasing."""
        return index * self.chunk + np.flatnonzero(self.source[self._rows(index)] < 0)

    def count(self, chunks: Sequence[int]) -> int:
        """Count the rows of these chunks that can be copied."""
        return sum(int((self.source[self._rows(index)] >= 0).sum()) for index in chunks)

    def copied(self, index: int) -> dict[str, list[list[int]]]:
        """Return the copied rows of chunk ``index``: ``[first, last + 1]`` of each run, by source."""
        source = self.source[self._rows(index)]
        return {
            other.folder.name: row_ranges(index * self.chunk + np.flatnonzero(source == number))
            for number, other in enumerate(self.sources)
            if (source == number).any()
        }

    def whole(self, index: int) -> dict[str, DigestedFile]:
        """Return the files of the one chunk that has just the rows of chunk ``index``, by array; empty if none has.

        A last chunk that is not full ends in zeros, and fits only the last chunk of a store of the same length.
        """
        source, row = self.source[self._rows(index)], self.row[self._rows(index)]
        if not len(source) or source[0] < 0 or row[0] % self.chunk:
            return {}
        other, part = self.sources[source[0]], int(row[0] // self.chunk)
        there = other.digests[row[0] : row[0] + self.chunk]
        same = other.size == self.chunk and len(there) == len(source)
        if not same or (source != source[0]).any() or (row != row[0] + np.arange(len(row))).any():
            return {}
        return {name: other.file(name, part) for name in other.layouts}

    def fill(self, index: int, chunk: Mapping[str, np.ndarray]) -> None:
        """Copy the known rows of chunk ``index`` into the arrays of ``chunk``, and zeros after the store's last row."""
        source, row = self.source[self._rows(index)], self.row[self._rows(index)]
        for number, other in enumerate(self.sources):
            mine = np.flatnonzero(source == number)
            for part in np.unique(row[mine] // other.size):
                here = mine[row[mine] // other.size == part]
                for name in other.layouts:
                    chunk[name][here] = other.chunk(name, int(part))[row[here] - part * other.size]
        for array in chunk.values():
            array[len(source) :] = 0

    def _rows(self, index: int) -> slice:
        return slice((index - self.first) * self.chunk, (index - self.first + 1) * self.chunk)


def _row_shapes(layouts: Mapping[str, ArrayLayout]) -> dict[str, tuple[Any, ...]]:
    """Return the shape of a row of each array, and its dtype."""
    return {name: (layout.shape[1:], layout.dtype) for name, layout in layouts.items()}


def _held(stores: Path, recipe: Mapping[str, Any], new: Path, say: Callable[[str], None]) -> Iterator[_Source]:
    """Yield the stores of this recipe. One that cannot be read is left out: it may be damaged, or not be ours."""
    for folder in sorted(stores.glob("*")):
        group = folder / GROUP
        begun = os.path.lexists(group / "zarr.json") or (os.path.lexists(group) and not group.is_dir())
        if folder == new or not begun:
            continue
        try:
            with reading(folder, "a store whose rows can be copied", "extract or pull it"):
                if source := _source(folder, recipe):
                    yield source
        except UserError as error:
            say(f"no rows are copied from a store: {error}")


def _source(folder: Path, recipe: Mapping[str, Any]) -> _Source | None:
    """Return the store in ``folder`` if it is of this recipe."""
    attributes = read_json(folder / GROUP / "zarr.json")["attributes"]
    check_attributes(attributes)
    if {**attributes, **_NOT_COMPARED} != {**recipe, **_NOT_COMPARED}:
        return None
    layouts, digests = read_layouts(folder), read_row_digests(folder)
    if not layouts or not len(digests):
        return None
    store = StoreWriter(folder, layouts)
    if {(layout.shape[0], layout.chunk) for layout in layouts.values()} != {(len(digests), store.size)}:
        raise ValueError(f"its arrays do not have the {len(digests)} rows of {ROWS}")
    return _Source(folder, layouts, digests, [index for index in store.chunks if store.checksums(index) is not None])
