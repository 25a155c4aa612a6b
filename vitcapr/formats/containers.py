"""NumPy and Parquet files: whole or absent when written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, sha256_file
from vitcapr.formats.records import reading

if TYPE_CHECKING:
    import pandas as pd

ROW_GROUP = 1 << 17
"""Rows in a row group of a Parquet file."""


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays to one ``.npz`` file. The same arrays give the same bytes."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def read_arrays(path: Path, kinds: Mapping[str, type], what: str, remedy: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of these names from a ``.npz`` file; never unpickled.

    Args:
        kinds: the NumPy type of each array by its name; an abstract one, such as ``np.integer``, admits all below it.
    """
    with reading(path, what, remedy):
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in kinds}
        for name, kind in kinds.items():
            _check_type(name, arrays[name], kind)
        return arrays


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write one array, as a ``.npy`` file."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, array, allow_pickle=False)


def read_array(path: Path, kind: type, what: str, remedy: str) -> NDArray[Any]:
    """Return the array of a ``.npy`` file; the arguments are those of :func:`read_arrays`."""
    with reading(path, what, remedy), path.open("rb") as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
        _check_type("the array", array, kind)
        return array


def _check_type(name: str, array: NDArray[Any], kind: type) -> None:
    if not np.issubdtype(array.dtype, kind):
        raise ValueError(f"{name} is of type {array.dtype}, not {kind.__name__}")


def read_parquet(path: Path) -> "pa.Table":
    """Return the whole table, read in this thread alone.

    pyarrow waits for ever for threads that cannot start, as under a limit of the address space.

    Raises:
        FileNotFoundError: there is no such file.
        OSError, pyarrow.ArrowException: it is not a whole Parquet file.
        MemoryError: the memory does not suffice.
    """
    with pq.ParquetFile(path, pre_buffer=False) as table:
        return table.read(use_threads=False)


def write_table(path: Path, table: "pa.Table") -> None:
    """Write the table; the same table gives the same bytes."""
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def check_columns(frame: "pd.DataFrame", schema: "pa.Schema") -> None:
    """Check the columns of a frame.

    Raises:
        ValueError: a column of the schema is missing or has empty cells, or a column is not in the schema.
    """
    if set(schema.names) != set(frame.columns):
        raise ValueError(f"the columns are {list(frame.columns)}, not {schema.names}")
    for name in schema.names:
        if frame[name].isna().any():
            raise ValueError(f"column {name} has empty cells")


def write_frame(path: Path, parts: "Iterable[pd.DataFrame]", schema: "pa.Schema") -> None:
    """Write the columns of ``schema``. The same values give the same bytes.

    Args:
        parts: those of :func:`slices`, each a row group; the whole has passed :func:`check_columns`.
    """
    with atomic_path(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        for part in parts:
            arrays = [pa.array(part[field.name], field.type) for field in schema]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def slices(frame: "pd.DataFrame") -> "Iterator[pd.DataFrame]":
    """``frame`` in parts of ``ROW_GROUP`` rows, so that the values of few rows are Python's objects at a time."""
    for first in range(0, max(len(frame), 1), ROW_GROUP):
        yield frame.iloc[first : first + ROW_GROUP]


@dataclass(frozen=True)
class TableFile:
    """A sealed file of :func:`write_frame`, read by columns and rows.

    The file is compared with its digest before anything is read from it.

    Attributes:
        name: what it is part of, for messages, as in "a data manifest".
        remedy: how to make it.
    """

    path: Path
    schema: pa.Schema
    sha256: str
    name: str
    remedy: str

    @cached_property
    def _file(self) -> "pq.ParquetFile":
        again = f"{self.remedy} again"
        if not self.path.is_file():
            raise UserError(f"part of {self.name} is missing", where=self.path, remedy=again)
        if sha256_file(self.path) != self.sha256:
            raise UserError("the file is not the one that manifest.json seals", where=self.path, remedy=again)
        with self._reading():
            file = pq.ParquetFile(self.path, pre_buffer=False)
            if not file.schema_arrow.equals(self.schema):
                raise ValueError("its columns are not those of the format")
            return file

    def _reading(self) -> AbstractContextManager[None]:
        return reading(self.path, f"a table of {self.name}", self.remedy)

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    def read(self, *columns: str) -> "pd.DataFrame":
        """Return these columns, or all; the index is the number of the row."""
        file = self._file
        with self._reading():
            frame: pd.DataFrame = file.read(columns=columns or None, use_threads=False).to_pandas(use_threads=False)
            return frame

    def column(self, name: str) -> "pd.Series[Any]":
        return self.read(name)[name]

    def batches(self, *columns: str) -> "Iterator[pd.DataFrame]":
        """Return the rows of a row group at a time."""
        return (self._group(group, columns) for group in range(self._file.num_row_groups))

    def rows(self, rows: NDArray[np.integer], *columns: str) -> "pd.DataFrame":
        """Return some rows, in the order asked for."""
        import pandas as pd

        groups = rows // ROW_GROUP
        parts = [self._group(int(group), columns).loc[np.unique(rows[groups == group])] for group in np.unique(groups)]
        return pd.concat(parts).loc[rows]

    def _group(self, group: int, columns: tuple[str, ...]) -> "pd.DataFrame":
        file = self._file
        with self._reading():
            frame: pd.DataFrame = file.read_row_group(group, columns or None, use_threads=False).to_pandas()
            return frame.set_axis(frame.index + group * ROW_GROUP)


def text_columns(rows: Iterable[Sequence[str | None]], names: Sequence[str]) -> "pd.DataFrame":
    """Return rows of texts as a data frame; only a few rows are Python objects at a time.

    A file name need not be UTF-8: its odd bytes become escapes.
    """

    def encode(texts: Sequence[str | None]) -> "pa.Array":
        encoded = [text and text.encode("utf-8", "backslashreplace") for text in texts]
        return pa.array(encoded, pa.large_binary()).cast(pa.large_string())

    schema = pa.schema([(name, pa.large_string()) for name in names])
    rows, parts = iter(rows), []
    while part := list(islice(rows, ROW_GROUP)):
        parts.append(pa.record_batch([encode(column) for column in zip(*part, strict=True)], schema))
    frame: pd.DataFrame = pa.Table.from_batches(parts, schema).to_pandas()
    return frame


def find_texts(texts: "pd.Series[str]", among: "pd.Series[str]") -> NDArray[np.int64]:
    """Return the row of each text in ``among``, -1 if it is not there; makes no Python's objects."""
    kind = pa.large_string()
    rows = pc.index_in(pa.array(texts, kind), value_set=pa.array(among, kind))
    return np.asarray(rows.fill_null(-1), np.int64)


def repeated(texts: "pd.Series[str]") -> NDArray[np.bool_]:
    """Return whether an earlier row has the same text. ``duplicated`` of pandas makes an object of every text."""
    order = texts.argsort(kind="stable").to_numpy()
    in_order = texts.iloc[order].array
    result = np.zeros(len(texts), bool)
    result[order[1:]] = in_order[1:] == in_order[:-1]
    return result


def take_rows(frame: "pd.DataFrame", rows: NDArray[Any]) -> "pd.DataFrame":
    """Return these rows, numbered anew. Large tables are seldom copied: most data sets lose nothing."""
    same = len(rows) == len(frame) and (np.diff(rows) == 1).all()
    return frame if same else frame.iloc[rows].reset_index(drop=True)


def frame_to_csv(frame: "pd.DataFrame") -> str:
    """Return the values of a data frame with all their digits, without its index."""
    return frame.to_csv(index=False, lineterminator="\n")
