"""Parquet tables that are small enough to be read whole."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, check_is_file


def read_parquet(path: Path) -> "pa.Table":
    """The table, read in this thread alone.

    Threads of pyarrow that cannot start, as under a limit of the address space, are waited for for ever.

    Raises:
        FileNotFoundError: there is no such file.
        OSError, pyarrow.ArrowException: it is not a whole Parquet file.
        UserError: the memory does not suffice.
    """
    check_is_file(path)
    try:
        with pq.ParquetFile(path, pre_buffer=False) as table:
            return table.read(use_threads=False)
    except MemoryError as error:
        remedy = "raise the limit of the memory (ulimit -v) and run the same command again"
        raise UserError("not enough memory to read the table", where=path, remedy=remedy) from error


def read_frame(path: Path, schema: "pa.Schema", what: str, remedy: str) -> pd.DataFrame:
    """The table of a file with exactly the columns of ``schema``.

    Args:
        what: that the file should be, as in "a table of pairs".
        remedy: how to make it, as in "run the data stage".

    Raises:
        UserError: the file is missing, is not a whole Parquet file, or has other columns.
    """
    try:
        table = read_parquet(path)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"not {what}: not a whole Parquet file", where=path, remedy=f"{remedy} again") from error
    if not table.schema.equals(schema):
        raise UserError(f"not {what}: its columns are not those of the format", where=path, remedy=f"{remedy} again")
    frame: pd.DataFrame = table.to_pandas(use_threads=False)
    return frame


def to_arrow(frame: pd.DataFrame, schema: "pa.Schema") -> "pa.Table":
    """``frame`` in exactly the columns of ``schema``, without the pandas version in its metadata.

    Raises:
        ValueError: a column is missing, has empty cells, or is not in the schema.
    """
    if missing := [name for name in schema.names if name not in frame.columns]:
        raise ValueError(f"columns missing: {missing}")
    if extra := [name for name in frame.columns if name not in schema.names]:
        raise ValueError(f"columns that the format does not have: {extra}")
    for name in schema.names:
        if frame[name].isna().any():
            raise ValueError(f"column {name} has empty cells")
    arrays = [pa.array(frame[field.name].tolist(), type=field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_table(path: Path, table: "pa.Table") -> None:
    """The same table gives the same bytes."""
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
