"""NumPy and Parquet files: whole or absent when written."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vitcapr.files import atomic_path, check_is_file
from vitcapr.formats.records import reading

if TYPE_CHECKING:
    import pandas as pd


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays to one ``.npz`` file. The same arrays give the same bytes."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def read_arrays(path: Path, kinds: Mapping[str, type], what: str, remedy: str) -> dict[str, NDArray[Any]]:
    """The arrays of these names from a ``.npz`` file; never unpickled.

    Args:
        kinds: the NumPy type of each array by its name; an abstract one, such as ``np.integer``, admits all below it.
    """
    with reading(path, what, remedy):
        check_is_file(path)
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
    """The array of a ``.npy`` file; the arguments are those of :func:`read_arrays`."""
    with reading(path, what, remedy), path.open("rb") as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
        _check_type("the array", array, kind)
        return array


def _check_type(name: str, array: NDArray[Any], kind: type) -> None:
    if not np.issubdtype(array.dtype, kind):
        raise ValueError(f"{name} is of type {array.dtype}, not {kind.__name__}")


def read_parquet(path: Path) -> "pa.Table":
    """The whole table, read in this thread alone: threads of pyarrow that cannot start, as under a limit of the address
    space, are waited for for ever.

    Raises:
        FileNotFoundError: there is no such file.
        OSError, pyarrow.ArrowException: it is not a whole Parquet file.
        MemoryError: the memory does not suffice.
    """
    check_is_file(path)
    with pq.ParquetFile(path, pre_buffer=False) as table:
        return table.read(use_threads=False)


def read_frame(path: Path, schema: "pa.Schema", what: str, remedy: str) -> "pd.DataFrame":
    """The table of a Parquet file with exactly the columns of ``schema``."""
    with reading(path, what, remedy):
        table = read_parquet(path)
        if not table.schema.equals(schema):
            raise ValueError("its columns are not those of the format")
        frame: pd.DataFrame = table.to_pandas(use_threads=False)
        return frame


def to_arrow(frame: "pd.DataFrame", schema: "pa.Schema") -> "pa.Table":
    """``frame`` in exactly the columns of ``schema``, without the pandas version in its metadata.

    Raises:
        ValueError: a column is missing, has empty cells, or is not in the schema.
    """
    if set(schema.names) != set(frame.columns):
        raise ValueError(f"the columns are {list(frame.columns)}, not {schema.names}")
    for name in schema.names:
        if frame[name].isna().any():
            raise ValueError(f"column {name} has empty cells")
    arrays = [pa.array(frame[field.name].tolist(), type=field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_table(path: Path, table: "pa.Table") -> None:
    """The same table gives the same bytes."""
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def frame_to_csv(frame: "pd.DataFrame") -> str:
    """The values of a data frame with all their digits, without its index."""
    return frame.to_csv(index=False, lineterminator="\n")
