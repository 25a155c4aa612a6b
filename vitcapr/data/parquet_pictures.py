"""Pictures that stay inside Parquet files: read a row group at a time, by any thread, nothing unpacked to disk."""

import threading
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vitcapr.data.archive import DamagedMember
from vitcapr.errors import UserError

SUFFIX = ".parquet"
IMAGE = "image"
GROUPS_IN_MEMORY = 3
"""Neighbouring rows are asked for together, by threads a few rows apart: more than two groups are seldom in use."""


def picture_path(table: str, row: int, column: str = IMAGE) -> str:
    """Name the picture in a row of ``table``, a Parquet file relative to the image root, for a manifest."""
    return f"{table}/{row:06d}" if column == IMAGE else f"{table}/{column}/{row:06d}"


def split_table_path(path: str) -> tuple[str, str, int] | None:
    """Table, column and row of a path that :func:`picture_path` gives; None for another path."""
    table, inside, place = path.rpartition(f"{SUFFIX}/")
    column, _, row = place.rpartition("/")
    return (f"{table}{SUFFIX}", column or IMAGE, int(row)) if inside and row.isdecimal() else None


def open_table(path: Path, column: str) -> "pq.ParquetFile":
    try:
        table = pq.ParquetFile(path)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        remedy = "compare its size with the original's"
        raise UserError("not a whole Parquet file", where=path, remedy=remedy) from error
    if _leaf(table, column) is None:
        remedy = f"it needs a column '{column}' of bytes, or {{bytes}}"
        raise UserError("the Parquet file has no pictures", where=path, remedy=remedy)
    return table


class TablePictures:
    """The pictures in the Parquet files below ``root``; no more than three row groups are in memory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._table, self._group = cache(self._open), lru_cache(GROUPS_IN_MEMORY)(self._read_group)

    def read(self, path: str) -> bytes:
        """Return the bytes of one picture.

        Raises:
            FileNotFoundError: there is no such table.
            DamagedMember: it has no such row, or nothing in it.
            UserError: the table is damaged, or no table of pictures.
        """
        name, column, row = split_table_path(path) or (path, IMAGE, 0)
        # One thread reads a group while the others wait for it: they want rows of the same one.
        with self._lock:
            _, ends = self._table(name, column)
            group = int(np.searchsorted(ends, row, side="right"))
            if group == len(ends):
                raise DamagedMember(f"no row {row} in a table of {int(ends[-1]) if len(ends) else 0}")
            pictures = self._group(name, column, group)
            first = int(ends[group - 1]) if group else 0
        content = pictures[row - first].as_py()
        if isinstance(content, dict):
            content = content["bytes"]
        if content is None:
            raise DamagedMember("the table names a picture and does not hold it")
        return bytes(content)

    def _open(self, name: str, column: str) -> "tuple[pq.ParquetFile, np.ndarray]":
        """Return a table, and the number of rows up to the end of each of its row groups."""
        table = open_table(self._root / name, column)
        sizes = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
        return table, np.cumsum(sizes, dtype=np.int64)

    def _read_group(self, name: str, column: str, group: int) -> "pa.ChunkedArray":
        table, _ = self._table(name, column)
        try:
            return table.read_row_group(group, columns=[_leaf(table, column)], use_threads=False).column(0)
        except (pa.ArrowException, OSError) as error:
            what, where = f"row group {group} of the Parquet file is damaged", self._root / name
            raise UserError(what, where=where, remedy="compare its size with the original's") from error

    def close(self) -> None:
        with self._lock:
            self._group.cache_clear()
            self._table.cache_clear()


def holds_bytes(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds files, as bytes or in Hugging Face's form."""
    if pa.types.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _leaf(table: "pq.ParquetFile", column: str) -> str | None:
    """Return the column of bytes: ``image.bytes`` in Hugging Face's form, or ``image``; None if there is none."""
    schema = table.schema_arrow
    if column not in schema.names or not holds_bytes(schema.field(column).type):
        return None
    return f"{column}.bytes" if pa.types.is_struct(schema.field(column).type) else column
