"""Rows of the user's tables: CSV, TSV, JSON lines, JSON and Parquet. One reader for all of them.

Only the columns that are asked for are read, so what stands in the others cannot stop it.
"""

import csv
import difflib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from vitcapr.data.tables import holds_bytes, picture_path
from vitcapr.data.tars import Rejected
from vitcapr.errors import UserError
from vitcapr.files import check_is_file, read_json

_TOO_MANY = "more cells than the header"
"""The key of the cells of a CSV or TSV row that no column names."""


@dataclass(frozen=True)
class Columns:
    """The columns that a reader asks for.

    Attributes:
        names: of each column, the names that it may have; the first that a table has counts.
        needed: the columns that a table must have.
        key: of the configuration, which names a column ``key.NAME``; empty if the names are fixed.
    """

    names: Mapping[str, Sequence[str]]
    needed: Sequence[str]
    key: str = ""

    def find(self, present: Sequence[str], where: Path) -> dict[str, str]:
        """Column -> its name in a table that has the names ``present``.

        Raises:
            UserError: a needed column is missing, two of them are one, or a name occurs twice.
        """
        if twice := [name for name, number in Counter(present).items() if number > 1]:
            raise UserError(f"the table has two columns '{twice[0]}'", where=where, remedy="rename one of them")
        chosen = {
            column: next(name for name in names if name in present)
            for column, names in self.names.items()
            if not set(present).isdisjoint(names)
        }
        for column in self.needed:
            if column not in chosen:
                raise self._missing(column, present, where)
        if len({chosen[column] for column in self.needed}) < len(self.needed):
            what = f"{' and '.join(self.needed)} are one column, '{chosen[self.needed[0]]}'"
            raise UserError(what, where=where, remedy=f"correct {self.key}")
        return chosen

    def _missing(self, column: str, present: Sequence[str], where: Path) -> UserError:
        names = self.names[column]
        by_lower = {name.lower(): name for name in present}
        close = [match for name in names for match in difflib.get_close_matches(name, by_lower, n=1)]
        numbered = [name for name in present if re.fullmatch(rf"({'|'.join(names)})[_ ]?\d+", name.lower())]
        guess = f"did you mean '{by_lower[close[0]]}'? " if close else ""
        if self.key and len(numbered) > 1:
            guess = f"did you mean {self.key}.{column}: [{', '.join(numbered)}]? "
        remedy = f"{guess}name the column with {self.key}.{column}; there are " if self.key else "there are "
        what = f"the table has no column {' or '.join(map(repr, names))}"
        if self.key:
            what = f"{self.key}.{column}: {what}"
        return UserError(what, where=where, remedy=remedy + (", ".join(present) or "none"))


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it is written.

    Attributes:
        number: from 1.
        place: the file and the number of the row, for ``rejected.csv``.
        cells: by the columns that were asked for; a column that the table lacks has no cell.
    """

    number: int
    place: str
    cells: Mapping[str, Any]

    def text(self, column: str) -> str:
        """A cell without spaces around it; empty if there is none."""
        cell = self.cells.get(column)
        return "" if cell is None else str(cell).strip()

    def name(self, column: str) -> str:
        """The name of an image: a text or a whole number; empty if the cell is neither."""
        return self.text(column) if type(self.cells.get(column)) in (str, int) else ""


def captions_of(cell: Any) -> list[str]:
    """One caption, or a list of captions; in CSV and TSV a list is written as JSON. An empty cell is an empty caption.

    Raises:
        TypeError: it is something else, such as a number.
    """
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            parsed = json.loads(cell)
        except (ValueError, RecursionError):
            return [cell]
        return captions_of(parsed)
    cells = cell if isinstance(cell, list) else [cell]
    if odd := [one for one in cells if not isinstance(one, str | None)]:
        raise TypeError(f"a caption is a text or a list of texts, not {odd[0]!r:.40}")
    return [one or "" for one in cells] or [""]


def read_rows(file: Path, columns: Columns, rejected: Rejected, *, key: str, name: str | None = None) -> Iterator[Row]:
    """The rows of a table, a few in memory at a time. A cell of CSV and TSV is text.

    Args:
        rejected: receives (item, reason) of the rows that cannot be read.
        key: the configuration key that names the file, for the error message.
        name: of the file in ``rejected``. For a Parquet file that holds images in a column of bytes: its path below the
            image root; the cell ``image`` is then the path of the image. Without it, the cell holds the bytes.
    """
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise UserError(f"{key}: unknown kind of table", where=file, remedy=f"name one of {', '.join(_READERS)}")
    number = 0
    try:
        check_is_file(file)
        for number, cells in enumerate(reader(file, columns, name), start=1):
            place = f"{name or file.name} row {number}"
            if _TOO_MANY in cells:
                rejected.append((place, "more cells than columns: a caption with the separator needs quotation marks"))
            else:
                yield Row(number, place, cells)
    except UserError:
        raise
    except FileNotFoundError as error:
        raise UserError(f"{key}: no such file", where=file) from error
    except UnicodeDecodeError as error:
        remedy = "save the table in the encoding UTF-8"
        raise UserError(f"{key}: not text in UTF-8: {error}", where=file, remedy=remedy) from error
    # A damaged table makes the libraries raise almost anything.
    except Exception as error:
        what = f"{key}: cannot be read after row {number}: {' '.join(str(error).split())[:200]}"
        raise UserError(what, where=file, remedy="correct it, or write or copy it again") from error


def _csv(file: Path, columns: Columns, _: str | None) -> Iterator[dict[str, Any]]:
    """The separator is a semicolon if the header has semicolons and no comma, as spreadsheets write it."""
    # A picture in Base64 is far longer than the 131,072 characters that a cell may have by default.
    csv.field_size_limit(sys.maxsize)
    with file.open(encoding="utf-8-sig", newline="") as stream:
        header = stream.readline()
        separator = ";" if ";" in header and "," not in header else ","
        stream.seek(0)
        delimiter = "\t" if file.suffix.lower() == ".tsv" else separator
        # Strict: an open quotation mark would swallow the rows up to the next one.
        rows = csv.DictReader(stream, delimiter=delimiter, restval="", restkey=_TOO_MANY, strict=True)
        chosen = columns.find(rows.fieldnames or (), file)
        for row in rows:
            yield row if _TOO_MANY in row else {column: row[name] for column, name in chosen.items()}


def _json_lines(file: Path, columns: Columns, _: str | None) -> Iterator[dict[str, Any]]:
    def objects() -> Iterator[dict[str, Any]]:
        with file.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    try:
                        yield dict(json.loads(line))
                    except (ValueError, TypeError) as error:
                        raise ValueError(f"line {number} is not a JSON object: {error}") from error

    yield from _select(objects(), columns, file)


def _json(file: Path, columns: Columns, _: str | None) -> Iterator[dict[str, Any]]:
    """A list of objects."""
    yield from _select((dict(row) for row in read_json(file)), columns, file)


def _select(objects: Iterator[dict[str, Any]], columns: Columns, where: Path) -> Iterator[dict[str, Any]]:
    """Each object may have other keys."""
    seen: dict[str, None] = {}
    for row in objects:
        seen |= dict.fromkeys(row)
        yield select(row, columns)
    columns.find(list(seen), where)


def select(row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """The cells of an object that were asked for."""
    first = {column: next((name for name in names if name in row), None) for column, names in columns.names.items()}
    return {column: row[name] for column, name in first.items() if name is not None}


def _parquet(file: Path, columns: Columns, inside: str | None) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(file) as table:
        schema = table.schema_arrow
        chosen = columns.find(schema.names, file)
        held = inside is not None and "image" in chosen and holds_bytes(schema.field(chosen["image"]).type)
        plain = {column: name for column, name in chosen.items() if not (held and column == "image")}
        row = 0
        for batch in table.iter_batches(batch_size=256, columns=list(plain.values()), use_threads=False):
            for cells in batch.to_pylist():
                path = {"image": picture_path(inside, row, chosen["image"])} if held and inside is not None else {}
                yield {column: cells[name] for column, name in plain.items()} | path
                row += 1


_READERS = {".csv": _csv, ".tsv": _csv, ".jsonl": _json_lines, ".parquet": _parquet, ".json": _json}
