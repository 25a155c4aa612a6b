"""Layout of a feature store: its rows, its files on disk, and its Zarr v3 metadata.

``STORES/<fingerprint>/features.zarr`` is the group; ``STORES/<fingerprint>/checksums/<chunk>.json`` says which
chunks are finished, and lies outside so that the group holds nothing but Zarr.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from vitcapr.formats.store_manifest import IDENTITIES

if TYPE_CHECKING:
    import pandas as pd

    from vitcapr.formats.containers import TableFile
    from vitcapr.formats.manifest import Manifest

GROUP = "features.zarr"
CHECKSUMS = "checksums"
STORE_NAME_LENGTH = 16
"""Digits of the fingerprint that name the folder of a store."""
PIXELS, TEXT = "pixels", "text"
"""The array of a store of decoded images, (N, S, S, 3) uint8, and of a store of captions, (M, D)."""
_AXES = {1: ("channel",), 2: ("patch", "channel"), 3: ("row", "column", "channel")}
"""The names of the axes of a row, by their number."""


@dataclass(frozen=True)
class Rows:
    """Rows of a store, in order: images or captions, read when they are asked for.

    Attributes:
        kind: ``image`` or ``caption``.
        sha256: of ids and contents of all rows.
    """

    kind: str
    table: "TableFile"
    sha256: str

    @classmethod
    def of_images(cls, data: "Manifest") -> "Rows":
        return cls("image", data.image_table, data.image_contents)

    @classmethod
    def of_captions(cls, data: "Manifest") -> "Rows":
        return cls("caption", data.caption_table, data.caption_contents)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def ids(self) -> "pd.Series[str]":
        return self.table.column(f"{self.kind}_id")

    def id_parts(self) -> Iterator["pd.Series[str]"]:
        """Return the ids, a row group at a time."""
        return (part[f"{self.kind}_id"] for part in self.table.batches(f"{self.kind}_id"))

    def texts(self, rows: np.ndarray) -> list[str]:
        """Return the path of each image, or the words of each caption."""
        column = "path" if self.kind == "image" else "text"
        texts: list[str] = self.table.rows(rows, column)[column].tolist()
        return texts

    def digests(self) -> Iterator[np.ndarray]:
        """Yield the SHA-256 of each file, or of the words of each caption, a row group at a time: (n, 32) uint8.

        Equal rows are copied from other stores.
        """
        if self.kind == "image":
            parts = (bytes.fromhex("".join(part["sha256"].tolist())) for part in self.table.batches("sha256"))
        else:
            texts = (part["text"].tolist() for part in self.table.batches("text"))
            parts = (b"".join(sha256(text.encode()).digest() for text in part) for part in texts)
        return (np.frombuffer(part, np.uint8).reshape(-1, sha256().digest_size) for part in parts)


@dataclass(frozen=True)
class ArrayLayout:
    """An array ``(N, ...)`` cut along its first axis only.

    Attributes:
        dtype: ``float16``, ``float32``, ``int8`` or ``uint8``; little endian on disk.
        axes: a name for each axis.
    """

    shape: tuple[int, ...]
    chunk: int
    dtype: str
    axes: tuple[str, ...]

    @classmethod
    def for_rows(cls, kind: str, shape: Sequence[int], chunk: int, dtype: str) -> Self:
        """Return the layout of features of images or of captions.

        Args:
            kind: ``image`` or ``caption``.
            shape: that of the array, N first.
        """
        axes = _AXES.get(len(shape) - 1) or tuple(f"axis_{number}" for number in range(1, len(shape)))
        return cls(tuple(shape), chunk, dtype, (kind, *axes))

    @property
    def chunks(self) -> int:
        return -(-self.shape[0] // self.chunk)

    @property
    def chunk_bytes(self) -> int:
        return self.chunk * math.prod(self.shape[1:]) * np.dtype(self.dtype).itemsize

    def metadata(self) -> dict[str, Any]:
        """Content of ``zarr.json``: ``bytes`` is the only codec, so a chunk file is the array itself."""
        bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
        return {
            "shape": list(self.shape),
            "data_type": self.dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [self.chunk, *self.shape[1:]]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": [bytes_codec if np.dtype(self.dtype).itemsize > 1 else {"name": "bytes"}],
        }

    def is_described_by(self, metadata: Any) -> bool:
        """Return whether ``metadata`` of an array, perhaps written by another program, describe these files."""
        expected = {**self.metadata(), "zarr_format": 3, "node_type": "array", "storage_transformers": []}
        known = {"storage_transformers": [], **metadata} if isinstance(metadata, dict) else {}
        return expected.items() <= known.items()

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Self:
        """Return the layout of the array that ``metadata`` describe.

        Raises:
            ValueError: the metadata are not of an array that this program writes. Other errors are possible.
        """
        chunk = metadata["chunk_grid"]["configuration"]["chunk_shape"][0]
        layout = cls(tuple(metadata["shape"]), chunk, metadata["data_type"], tuple(metadata["dimension_names"]))
        sizes = (chunk, *layout.shape)
        if any(type(size) is not int or size < 1 for size in sizes) or not layout.is_described_by(metadata):
            raise ValueError("other programs wrote it")
        return layout


def identity_in(manifest: Mapping[str, Any]) -> str:
    """Return the identity of a row of a sealed store: ``image_id`` or ``caption_id``."""
    return next(name for name in IDENTITIES if name in manifest)


def layouts_in(manifest: Mapping[str, Any]) -> dict[str, ArrayLayout]:
    """Return the arrays of a sealed store, by name."""
    kind, chunk = identity_in(manifest).removesuffix("_id"), manifest["chunk"]
    return {
        name: ArrayLayout.for_rows(kind, array["shape"], chunk, array["dtype"])
        for name, array in manifest["arrays"].items()
    }


def chunk_path(array: Path, index: int, ndim: int) -> Path:
    """Return the file of chunk ``index`` along the first axis of the array in folder ``array``."""
    return array.joinpath("c", str(index), *["0"] * (ndim - 1))


def checksum_path(store: Path, index: int) -> Path:
    return store / CHECKSUMS / f"{index:06d}.json"


def chunk_range(chunks: int, task: int, tasks: int) -> range:
    """Return the chunks that ``task`` (from 0) of ``tasks`` owns: neighbours, sizes that differ by at most one."""
    return range(chunks * task // tasks, chunks * (task + 1) // tasks)


def row_ranges(rows: np.ndarray) -> list[list[int]]:
    """``[0, 1, 2, 7]`` -> ``[[0, 3], [7, 8]]``: the increasing ``rows`` as ranges, ends excluded."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    return [[int(part[0]), int(part[-1]) + 1] for part in np.split(rows, breaks) if part.size]


def encode_ids(parts: Iterable[Collection[str]]) -> np.ndarray:
    """``(N, L)`` uint8: each id in UTF-8, filled up with zeros; Zarr v3 has no string type that all readers know.

    Args:
        parts: the ids, in lists or columns of data frames.
    """
    tables = [_encode(ids) for ids in parts]
    longest = max(table.shape[1] for table in tables)
    return np.concatenate([np.pad(table, ((0, 0), (0, longest - table.shape[1]))) for table in tables])


def _encode(ids: Collection[str]) -> np.ndarray:
    column = pa.table({"id": ids}).column("id").cast(pa.large_string()).combine_chunks()
    _, offsets, content = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset :][: len(ids) + 1]
    lengths = np.diff(ends)
    table = np.zeros((len(ids), lengths.max()), np.uint8)
    table[np.arange(table.shape[1]) < lengths[:, None]] = np.frombuffer(content, np.uint8)[ends[0] : ends[-1]]
    return table


def decode_ids(table: np.ndarray) -> list[str]:
    """Return the inverse of :func:`encode_ids`."""
    return [row.tobytes().rstrip(b"\0").decode("utf-8") for row in table]
