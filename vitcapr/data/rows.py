"""The rows of a table of the user: CSV, TSV, JSON lines or Parquet."""

import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vitcapr.errors import UserError
from vitcapr.files import check_is_file

Row = dict[str, Any]
Reader = Callable[[Path], Iterator[Row]]

TOO_MANY = "more cells than the header"
"""The key of the cells of a CSV or TSV row that no column names."""
_ROWS_AT_ONCE = 256


class _BadLineError(Exception):
    """A line that is no JSON object."""


def read_rows(file: Path, key: str) -> Iterator[Row]:
    """The rows of a table, a few in memory at a time. A cell of CSV and TSV is text; a missing cell is empty.

    Args:
        key: the configuration key that names the file, for the error message.

    Raises:
        UserError: no such file, of no known kind, or not of the kind that its name says.
    """
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise UserError(f"{key}: unknown kind of table", where=file, remedy=f"name one of {', '.join(READERS)}")
    try:
        check_is_file(file)
        yield from reader(file)
    except FileNotFoundError as error:
        raise UserError(f"{key}: no such file", where=file) from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{key}: not text in UTF-8: {error}", where=file, remedy="save the table in the encoding UTF-8"
        ) from error
    except _BadLineError as error:
        raise UserError(f"{key}: {error}", where=file) from error
    except (csv.Error, pa.ArrowException) as error:
        raise UserError(f"{key}: cannot be read: {error}", where=file) from error


def _csv(file: Path) -> Iterator[Row]:
    """The separator is a semicolon if the header has semicolons and no comma, as spreadsheets write it."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        header = stream.readline()
    yield from _separated(file, ";" if ";" in header and "," not in header else ",")


def _tsv(file: Path) -> Iterator[Row]:
    yield from _separated(file, "\t")


def _separated(file: Path, separator: str) -> Iterator[Row]:
    # A picture in Base64 is far longer than the 131,072 characters that a cell may have by default.
    csv.field_size_limit(sys.maxsize)
    with file.open(encoding="utf-8-sig", newline="") as stream:
        yield from csv.DictReader(stream, delimiter=separator, restval="", restkey=TOO_MANY)


def _json_lines(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                try:
                    row = json.loads(line)
                except json.JSONDecodeError as error:
                    raise _BadLineError(f"line {number} is not JSON: {error}") from error
                if not isinstance(row, dict):
                    raise _BadLineError(f"line {number} is not a JSON object")
                yield row


def _parquet(file: Path) -> Iterator[Row]:
    with pq.ParquetFile(file) as table:
        for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE, use_threads=False):
            yield from batch.to_pylist()


READERS: dict[str, Reader] = {".csv": _csv, ".tsv": _tsv, ".jsonl": _json_lines, ".parquet": _parquet}
