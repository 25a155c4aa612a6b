"""Rows of a new store that other stores under the same root already hold.

A row is known by its digest (of the image or the caption) and by the recipe of its store: the weights, the
preprocessing, the arithmetic and the code. ``rows.npy`` beside the group holds the digests of a store's rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, check_is_file, read_json, sha256_bytes
from vitcapr.formats.store_manifest import LAYERS, SCALE, arrays_of_layer
from vitcapr.store.layout import GROUP, ArrayLayout, chunk_path, row_ranges
from vitcapr.store.rows import Rows
from vitcapr.store.writer import TERMS, StoreWriter, read_layouts

ROWS = "rows.npy"
_DIGEST_BYTES = 32
_NOT_COMPARED = {"fingerprint", "images_sha256", "captions_sha256", "grid", TERMS, LAYERS, "hidden_layers"}
"""Attributes that do not say how a row is computed; layers are compared apart."""


def write_row_digests(folder: Path, rows: Rows) -> None:
    """Write the digest of each row of the store in ``folder``, unless another task has: (N, 32) uint8."""
    if len(read_row_digests(folder)) != len(rows):
        described = {"descr": "|u1", "fortran_order": False, "shape": (len(rows), _DIGEST_BYTES)}
        with atomic_path(folder / ROWS) as temporary, temporary.open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, described)
            for part in rows.digests():
                stream.write(part.data)


def read_row_digests(folder: Path) -> np.ndarray:
    """The digests of the rows, mapped; empty if the store has none."""
    try:
        check_is_file(folder / ROWS)
        table: np.ndarray = np.load(folder / ROWS, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        table = np.empty(0)
    sound = table.dtype == np.uint8 and table.ndim == 2 and table.shape[1] == _DIGEST_BYTES
    return table if sound else np.empty((0, _DIGEST_BYTES), np.uint8)


@dataclass(frozen=True)
class _Source(StoreWriter):
    """Another store, with the digests of its rows and the numbers of its finished chunks."""

    digests: np.ndarray
    finished: list[int]
    _checked: set[tuple[str, int]] = field(default_factory=set)

    def find(self, digests: np.ndarray) -> np.ndarray:
        """The row of each digest in a finished chunk, -1 for none: (N,)."""
        there = (self.size * np.array(self.finished, np.int64)[:, None] + np.arange(self.size)).ravel()
        there = there[there < len(self.digests)]
        if not len(there):
            return np.full(len(digests), -1)
        # Two different digests seldom agree in their first eight bytes.
        known, wanted = self.digests.view(np.uint64), digests.view(np.uint64)
        there = there[~pd.Index(known[there, 0]).duplicated(keep="last")]
        row = there[pd.Index(known[there, 0]).get_indexer(wanted[:, 0])]
        return np.where((known[row] == wanted).all(axis=1), row, -1)

    def chunk(self, name: str, index: int) -> np.ndarray:
        """A chunk, mapped; compared with its checksum when it is first used."""
        layout = self.layouts[name]
        path = chunk_path(self.group / name, index, len(layout.shape))
        shape = (layout.chunk, *layout.shape[1:])
        mapped = np.memmap(path, np.dtype(layout.dtype).newbyteorder("<"), "r", shape=shape)
        if (name, index) not in self._checked:
            recorded = self.checksums(index)
            if recorded is None or recorded[name] != sha256_bytes(mapped.tobytes()):
                raise UserError(
                    f"chunk {index} of '{name}' is damaged, and rows of the new store were to be copied from it",
                    where=path,
                    remedy="delete it with vitcapr features verify --delete, or set features.reuse: false",
                )
            self._checked.add((name, index))
        return mapped

    @property
    def arrays(self) -> dict[str, tuple[Any, ...]]:
        return {name: (layout.shape[1:], layout.dtype) for name, layout in self.layouts.items()}


@dataclass(frozen=True)
class KnownRows:
    """Where each row of some neighbouring chunks of a new store can be copied from.

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
    def none(cls, rows: int, chunk: int, first: int = 0) -> Self:
        """Every row has to be computed."""
        return cls((), np.full(rows, -1), np.full(rows, -1), chunk, first)

    @classmethod
    def find(
        cls,
        stores: Path,
        recipe: Mapping[str, Any],
        digests: np.ndarray,
        chunk: int,
        first: int = 0,
        except_for: Path | None = None,
    ) -> Self:
        """Look through all stores in the folder ``stores``.

        Args:
            recipe: the attributes that a store must have for its rows to be those of the new store.
            digests: (N, 32), those of the rows.
            except_for: the folder of a store that is no source, for instance the new one.
        """
        sources: list[_Source] = []
        known = cls.none(len(digests), chunk, first)
        held = _held(stores, recipe, except_for)
        for other in sorted(held, key=lambda store: (-len(store.finished) * store.size, store.folder.name)):
            if sources and other.arrays != sources[0].arrays:
                continue
            rows = other.find(digests)
            new = (known.source < 0) & (rows >= 0)
            if new.any():
                known.source[new], known.row[new] = len(sources), rows[new]
                sources.append(other)
        return replace(known, sources=tuple(sources))

    def missing(self, index: int) -> np.ndarray:
        """The rows of chunk ``index`` that have to be computed, increasing."""
        return index * self.chunk + np.flatnonzero(self.source[self._rows(index)] < 0)

    def count(self, chunks: Sequence[int]) -> int:
        """How many rows of these chunks can be copied."""
        return sum(int((self.source[self._rows(index)] >= 0).sum()) for index in chunks)

    def copied(self, index: int) -> dict[str, list[list[int]]]:
        """The rows of chunk ``index`` that are copied: ``[first, last + 1]`` of each run, by the name of the source."""
        source = self.source[self._rows(index)]
        return {
            other.folder.name: row_ranges(index * self.chunk + np.flatnonzero(source == number))
            for number, other in enumerate(self.sources)
            if (source == number).any()
        }

    def fill(self, index: int, layouts: Mapping[str, ArrayLayout]) -> dict[str, np.ndarray]:
        """Chunk ``index`` of each array with its known rows, and zeros elsewhere."""
        buffers = {name: np.zeros((layout.chunk, *layout.shape[1:]), layout.dtype) for name, layout in layouts.items()}
        source, row = self.source[self._rows(index)], self.row[self._rows(index)]
        for number, other in enumerate(self.sources):
            mine = np.flatnonzero(source == number)
            for part in np.unique(row[mine] // other.size):
                here = mine[row[mine] // other.size == part]
                for name in other.layouts:
                    buffers[name][here] = other.chunk(name, int(part))[row[here] - part * other.size]
        return buffers

    def twins(self, index: int) -> dict[str, Path]:
        """The chunk of another store that begins with the same row as chunk ``index``, all rows of which are known."""
        place = self._rows(index).start
        other, row = self.sources[self.source[place]], int(self.row[place])
        return {
            name: chunk_path(other.group / name, row // layout.chunk, len(layout.shape))
            for name, layout in other.layouts.items()
        }

    def _rows(self, index: int) -> slice:
        return slice((index - self.first) * self.chunk, (index - self.first + 1) * self.chunk)


def _how_computed(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key not in _NOT_COMPARED}


def _held(stores: Path, recipe: Mapping[str, Any], except_for: Path | None) -> Iterator[_Source]:
    """The stores of this recipe. One may hold more hidden layers than the recipe has; their arrays are left out."""
    layers = set(recipe.get(LAYERS, ()))
    for path in stores.glob(f"*/{GROUP}/zarr.json"):
        folder, attributes = path.parent.parent, read_json(path).get("attributes", {})
        further = set(attributes.get(LAYERS, ())) - layers
        if (
            folder == except_for
            or _how_computed(attributes) != _how_computed(recipe)
            or not layers <= set(attributes.get(LAYERS, ()))
        ):
            continue
        left_out = {name for layer in further for array in arrays_of_layer(layer) for name in (array, array + SCALE)}
        layouts = {name: layout for name, layout in read_layouts(folder).items() if name not in left_out}
        digests = read_row_digests(folder)
        if not layouts or any(layout.shape[0] != len(digests) for layout in layouts.values()):
            continue
        store = StoreWriter(folder, layouts)
        yield _Source(folder, layouts, digests, [index for index in store.chunks if store.checksums(index) is not None])
