"""Parquet tables that are small enough to be read whole."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vitcapr.errors import UserError


def read_parquet(path: Path) -> "pa.Table":
    """The table, read in this thread alone.

    Threads of pyarrow that cannot start, as under a limit of the address space, are waited for for ever.

    Raises:
        FileNotFoundError: there is no such file.
        OSError, pyarrow.ArrowException: it is not a whole Parquet file.
        UserError: the memory does not suffice.
    """
    try:
        with pq.ParquetFile(path, pre_buffer=False) as table:
            return table.read(use_threads=False)
    except MemoryError as error:
        remedy = "raise the limit of the memory (ulimit -v) and run the same command again"
        raise UserError("not enough memory to read the table", where=path, remedy=remedy) from error
