"""Rows of a new store that other stores under the same root already hold.

A row is known by its digest (of the picture or the caption) and by the recipe of its store: the weights, the
preprocessing, the arithmetic and the code. ``rows.npy`` beside the group holds the digests of a store's rows.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import read_json, sha256_bytes, write_bytes
from vitcapr.formats.store_manifest import LAYERS, SCALE, arrays_of_layer
from vitcapr.store.layout import GROUP, ArrayLayout, chunk_path
from vitcapr.store.writer import StoreWriter, finished, read_layouts

ROWS = "rows.npy"
_DIGEST_BYTES = 32


def write_row_digests(folder: Path, digests: Sequence[str]) -> None:
    """Write the digest of each row of the store in ``folder``: (N, 32) uint8.

    Args:
        digests: SHA-256 in hexadecimal digits.
    """
    stream = io.BytesIO()
    np.save(stream, np.frombuffer(bytes.fromhex("".join(digests)), np.uint8).reshape(-1, _DIGEST_BYTES))
    path = folder / ROWS
    if not path.is_file() or path.read_bytes() != stream.getvalue():
        write_bytes(path, stream.getvalue())


def _read_row_digests(folder: Path) -> list[str]:
    """The digests of the rows; empty if the store has none."""
    try:
        table = np.load(folder / ROWS, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return []
    if table.dtype != np.uint8 or table.ndim != 2 or table.shape[1] != _DIGEST_BYTES:
        return []
    text = table.tobytes().hex()
    return [text[start : start + 2 * _DIGEST_BYTES] for start in range(0, len(text), 2 * _DIGEST_BYTES)]


@dataclass(frozen=True)
class _Source:
    """Another store. ``checked`` are the chunks that have been compared with their checksums."""

    folder: Path
    layouts: Mapping[str, ArrayLayout]
    checked: set[int] = field(default_factory=set)

    @property
    def chunk_rows(self) -> int:
        return next(iter(self.layouts.values())).chunk

    def paths(self, index: int) -> dict[str, Path]:
        """The file of chunk ``index`` of each array."""
        return {
            name: chunk_path(self.folder / GROUP / name, index, len(layout.shape))
            for name, layout in self.layouts.items()
        }

    def chunk(self, index: int) -> dict[str, np.ndarray]:
        """Chunk ``index`` of each array, memory-mapped.

        Raises:
            UserError: it differs from its checksum.
        """
        arrays: dict[str, np.ndarray] = {}
        recorded = None if index in self.checked else finished(self.folder, self.layouts, index) or {}
        for name, path in self.paths(index).items():
            layout = self.layouts[name]
            shape = (layout.chunk, *layout.shape[1:])
            arrays[name] = np.memmap(path, np.dtype(layout.dtype).newbyteorder("<"), "r", shape=shape)
            if recorded is not None and recorded.get(name) != sha256_bytes(arrays[name].tobytes()):
                raise UserError(
                    f"chunk {index} of '{name}' is damaged, and rows of the new store were to be copied from it",
                    where=path,
                    remedy="delete it with vitcapr features verify --delete, or set features.reuse: false",
                )
        self.checked.add(index)
        return arrays


@dataclass(frozen=True)
class KnownRows:
    """Where each row of a new store can be copied from.

    Attributes:
        sources: the stores that hold at least one of its rows.
        source: (N,) the number of the source of each row, -1 for a row that has to be computed.
        row: (N,) the row in that source.
        chunk: rows in a chunk of the new store.
    """

    sources: tuple[_Source, ...]
    source: np.ndarray
    row: np.ndarray
    chunk: int

    @classmethod
    def none(cls, rows: int, chunk: int) -> Self:
        """Every row has to be computed."""
        return cls((), np.full(rows, -1), np.full(rows, -1), chunk)

    @classmethod
    def find(
        cls, stores: Path, recipe: Mapping[str, Any], digests: Sequence[str], chunk: int, except_for: Path | None = None
    ) -> Self:
        """Look through all stores in the folder ``stores``.

        Args:
            recipe: the attributes that a store must have for its rows to be those of the new store.
            digests: of the rows of the new store, in order.
            except_for: the folder of a store that is no source, for instance the new one.
        """
        sources: list[_Source] = []
        source, row = np.full(len(digests), -1), np.full(len(digests), -1)
        for other, rows in sorted(
            _held(stores, recipe, except_for), key=lambda held: (-len(held[1]), held[0].folder.name)
        ):
            if sources and not _same_arrays(sources[0], other):
                continue
            found = np.array([rows.get(digest, -1) for digest in digests])
            new = (source < 0) & (found >= 0)
            if new.any():
                source[new], row[new] = len(sources), found[new]
                sources.append(other)
        return cls(tuple(sources), source, row, chunk)

    def missing(self, index: int) -> np.ndarray:
        """The rows of chunk ``index`` that have to be computed, increasing."""
        return index * self.chunk + np.flatnonzero(self._of(index)[0] < 0)

    def count(self, chunks: Sequence[int]) -> int:
        """How many rows of these chunks can be copied."""
        return sum(int((self._of(index)[0] >= 0).sum()) for index in chunks)

    def copied(self, index: int) -> dict[str, list[list[int]]]:
        """The rows of chunk ``index`` that are copied: ``[first, last + 1]`` of each run, by the name of the source."""
        source, _ = self._of(index)
        return {
            other.folder.name: _runs(index * self.chunk + np.flatnonzero(source == number))
            for number, other in enumerate(self.sources)
            if (source == number).any()
        }

    def fill(self, index: int, layouts: Mapping[str, ArrayLayout]) -> dict[str, np.ndarray]:
        """Chunk ``index`` of each array with its known rows, and zeros elsewhere.

        Raises:
            UserError: a chunk of another store is damaged.
        """
        buffers = {name: np.zeros((layout.chunk, *layout.shape[1:]), layout.dtype) for name, layout in layouts.items()}
        source, row = self._of(index)
        for number, other in enumerate(self.sources):
            mine = np.flatnonzero(source == number)
            for part in np.unique(row[mine] // other.chunk_rows):
                here = mine[row[mine] // other.chunk_rows == part]
                for name, held in other.chunk(int(part)).items():
                    buffers[name][here] = held[row[here] - part * other.chunk_rows]
        return buffers

    def copy_chunk(self, index: int, writer: StoreWriter) -> bool:
        """Write chunk ``index`` if all its rows are known. If it equals a chunk of another store, link its files.

        Returns:
            Whether it was written.

        Raises:
            UserError: a chunk of another store is damaged, or the disk is full.
        """
        if len(self.missing(index)):
            return False
        equal = self._equal_chunk(index)
        if equal is None:
            writer.write(index, self.fill(index, writer.layouts), self.copied(index))
        else:
            other, part = equal
            other.chunk(part)
            checksums = finished(other.folder, other.layouts, part) or {}
            writer.link(index, other.paths(part), checksums, self.copied(index))
        return True

    def _of(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        rows = slice(index * self.chunk, (index + 1) * self.chunk)
        return self.source[rows], self.row[rows]

    def _equal_chunk(self, index: int) -> tuple[_Source, int] | None:
        """The chunk of another store that has the same rows in the same order and no other row."""
        source, row = self._of(index)
        other = self.sources[source[0]]
        part, within = divmod(int(row[0]), other.chunk_rows)
        rows = min(other.chunk_rows, next(iter(other.layouts.values())).shape[0] - part * other.chunk_rows)
        consecutive = (source == source[0]).all() and (row == row[0] + np.arange(len(row))).all()
        same = consecutive and within == 0 and rows == len(row) and other.chunk_rows == self.chunk
        return (other, part) if same else None


def _held(stores: Path, recipe: Mapping[str, Any], except_for: Path | None) -> Iterator[tuple[_Source, dict[str, int]]]:
    """The stores of this recipe, with the row of each digest that a finished chunk holds.

    A store may hold more hidden layers than the recipe has; their arrays are left out.
    """
    layers = set(recipe.get(LAYERS, ()))
    exact = {key: value for key, value in recipe.items() if key != LAYERS}
    for path in stores.glob(f"*/{GROUP}/zarr.json"):
        other = path.parent.parent
        if other == except_for:
            continue
        attributes = read_json(path).get("attributes", {})
        if any(key not in attributes or attributes[key] != value for key, value in exact.items()):
            continue
        held = set(attributes.get(LAYERS, ()))
        if not layers <= held:
            continue
        layouts, digests = _without(read_layouts(other), held - layers), _read_row_digests(other)
        if not layouts or any(layout.shape[0] != len(digests) for layout in layouts.values()):
            continue
        size = next(iter(layouts.values())).chunk
        chunks = [index for index in range(-(-len(digests) // size)) if finished(other, layouts, index) is not None]
        rows = {
            digests[row]: row for index in chunks for row in range(index * size, min((index + 1) * size, len(digests)))
        }
        yield _Source(other, layouts), rows


def _without(layouts: Mapping[str, ArrayLayout] | None, layers: set[int]) -> dict[str, ArrayLayout]:
    """The arrays of a store but those of some hidden layers."""
    left_out = {name for layer in layers for array in arrays_of_layer(layer) for name in (array, array + SCALE)}
    return {name: layout for name, layout in (layouts or {}).items() if name not in left_out}


def _same_arrays(one: _Source, other: _Source) -> bool:
    def arrays(source: _Source) -> dict[str, tuple[Any, ...]]:
        return {name: (layout.shape[1:], layout.dtype) for name, layout in source.layouts.items()}

    return arrays(one) == arrays(other)


def _runs(rows: np.ndarray) -> list[list[int]]:
    """``[first, last + 1]`` of each run of consecutive numbers."""
    runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    return [[int(run[0]), int(run[-1]) + 1] for run in runs]
