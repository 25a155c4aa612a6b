"""Rows of the user's tables: CSV, TSV, JSON lines, JSON and Parquet. One reader for all of them.

Only the columns that are asked for are read, so what stands in the others cannot stop it.
"""

import ast
import csv
import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from vitcapr.data.archive import OddRow, Rejected
from vitcapr.data.parquet_pictures import holds_bytes, picture_path
from vitcapr.errors import UserError
from vitcapr.files import open_text, parse_json, read_field, read_json

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_MISSING = ("nan", "none", "null", "<na>", "n/a", "#n/a")
"""Words by which programs mark a missing value in a table of text."""
_TEXT = r"""(?:'(?:[^'\\\r\n]|\\.)*'|"(?:[^"\\\r\n]|\\.)*")"""
_LIST = re.compile(rf"(?:[\[{{]|\((?=\s*{_TEXT}\s*,))[\s,]*(?:{_TEXT}[\s,]*)*[\]}})]")
"""A list, tuple or set of texts as Python, numpy or PostgreSQL print it; read in linear time."""
_LIKE_LIST = re.compile(r"""(?:array\()?\[+\s*(?:np\.str_\(|[bru])?['"](?:.*['"]\s*,\s*['"]|.*\]\)?$)""", re.S)


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

    def find(self, present: Sequence[str], where: object) -> dict[str, str]:
        """Column -> its name in a table that has the names ``present``.

        Raises:
            UserError: a needed column is missing, two of them are one, or one occurs twice.
        """
        chosen = {
            column: next(name for name in names if name in present)
            for column, names in self.names.items()
            if not set(present).isdisjoint(names)
        }
        for column in self.needed:
            if column not in chosen:
                raise self._missing(column, present, where)
        if twice := [name for name in chosen.values() if present.count(name) > 1]:
            raise UserError(f"the table has two columns '{twice[0]}'", where=where, remedy="rename one of them")
        if len({chosen[column] for column in self.needed}) < len(self.needed):
            what = f"{' and '.join(self.needed)} are one column, '{chosen[self.needed[0]]}'"
            raise UserError(what, where=where, remedy=f"correct {self.key}")
        return chosen

    def _missing(self, column: str, present: Sequence[str], where: object) -> UserError:
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
        return UserError(what, where=where, remedy=remedy + (", ".join(present).replace("\t", r"\t") or "none"))


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
        """Return a cell without spaces around it; empty if there is none. ``none`` is the name of a split."""
        cell = self.cells.get(column)
        text = "" if cell is None else str(cell).strip()
        return "" if text != "none" and text.lower() in _MISSING else text

    def name(self, column: str) -> str:
        """Return the name of an image: a text or a whole number; empty if the cell is neither."""
        return self.text(column) if type(self.cells.get(column)) in (str, int) else ""


def captions_of(cell: Any, place: str, rejected: Rejected) -> list[str]:
    """Return the captions of a cell: one, or the entries of a list. An empty cell is an empty caption.

    In CSV and TSV a list is written as JSON, or as Python and numpy print a list of texts.

    Whatever else it holds, such as a number or the word ``nan``, is added to ``rejected`` with its ``place`` and the
    reason; the captions beside it stay.
    """
    if isinstance(cell, str) and cell.lstrip().startswith(("[", "{", "(", "array(")):
        cell = _parse_list(cell.strip())
    captions = [_caption(one) for one in (cell if isinstance(cell, list) else [cell])] or [""]
    rejected += [(place, one) for one in captions if isinstance(one, OddRow)]
    return [one for one in captions if not isinstance(one, OddRow)]


def _caption(cell: Any) -> str | OddRow:
    if not isinstance(cell, str | None):
        return OddRow(f"a caption is a text or a list of texts, not {cell!r:.40}")
    if cell and cell.strip(" []()").lower() in _MISSING:
        return OddRow(f"no caption: the cell says {cell.strip()!r}")
    return cell or ""


def _parse_list(text: str) -> Any:
    """Parse a cell that begins with a bracket; returns the text itself if it is not a list."""
    with suppress(ValueError, RecursionError):
        return parse_json(text)
    bare = re.sub(r"^array\(|(?:, dtype=\w+)?\)$", "", text) if text.startswith("array(") else text
    with suppress(ValueError, SyntaxError):  # Of an escape that Python does not have.
        if _LIST.fullmatch(bare):
            return [ast.literal_eval(one) for one in re.findall(_TEXT, bare)]
    if _LIKE_LIST.match(text):
        return OddRow(f"the list must be JSON, not {text!r:.40}")
    return text


def read_rows(file: Path, columns: Columns, rejected: Rejected, *, key: str, name: str | None = None) -> Iterator[Row]:
    """Yield the rows of a table, a few in memory at a time. A cell of CSV and TSV is text.

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
        for number, cells in enumerate(reader(file, columns, name), start=1):
            place = f"{name or file.name} row {number}"
            if isinstance(cells, OddRow):
                rejected.append((place, cells))
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
        raise UserError(what, where=file, remedy="correct it, or compare its size with the original's") from error


_Cells = Iterator[dict[str, Any] | OddRow]


def _csv(file: Path, columns: Columns, _: str | None) -> _Cells:
    """CSV with any of the usual separators, or with the one that Excel's first line names, ``sep=;``."""
    # A picture in Base64 is far longer than the 131,072 characters that a cell may have by default.
    csv.field_size_limit(sys.maxsize)
    with open_text(file) as stream:
        header = stream.readline()
        if excel := re.fullmatch(r'"?sep=(.)"?\s*', header, re.IGNORECASE):
            header = stream.readline()
        separator = excel[1] if excel else _find_separator(header, columns, file)
        # Strict: an open quotation mark would swallow the rows up to the next one. The spaces of "a.jpg, "a dog, red""
        # are no part of the cells; Flickr30k's "a.jpg| 0| "Dog" is written" has no quoted cells.
        spaces = separator != "|" and f"{separator} " in header
        rows = csv.reader(chain([header], stream), delimiter=separator, strict=True, skipinitialspace=spaces)
        names = [name.strip() for name in next(rows, [])]
        separated = f"separated by {_SEPARATORS.get(separator, separator)}"
        places = {column: names.index(name) for column, name in columns.find(names, f"{file}, {separated}").items()}
        last = max(places[column] for column in columns.needed)
        for row in filter(None, rows):
            if any(row[len(names) :]):
                yield OddRow("more cells than columns: a caption with the separator needs quotation marks")
            elif len(row) <= last:
                yield OddRow(f"fewer cells than columns: {len(row)}, {separated}")
            else:
                yield {column: row[place] if place < len(row) else "" for column, place in places.items()}


def _find_separator(header: str, columns: Columns, file: Path) -> str:
    """Return the separator with which the header has the columns that a table needs, or the most frequent one."""

    def fit(separator: str) -> tuple[bool, int]:
        present = {name.strip() for name in next(csv.reader([header], delimiter=separator), [])}
        return all(present & set(columns.names[column]) for column in columns.needed), header.count(separator)

    first = "\t" if file.suffix.lower() == ".tsv" else ","
    return max([first, *_SEPARATORS], key=fit)


def _json_lines(file: Path, columns: Columns, _: str | None) -> _Cells:
    def parse(number: int, line: str) -> Any:
        try:
            return parse_json(line)
        except (ValueError, RecursionError) as error:
            return OddRow(f"line {number} is not a JSON object: {error}")

    with open_text(file) as stream:
        numbered = enumerate(stream, start=1)
        yield from _select((parse(number, line) for number, line in numbered if line.strip()), columns, file)


def _json(file: Path, columns: Columns, _: str | None) -> _Cells:
    """Yield a list of objects; ``{image: [captions]}`` stands for one with the usual names."""
    table = read_json(file)
    if isinstance(table, dict):
        table = [{"image": image, "caption": captions} for image, captions in table.items()]
    yield from _select(read_field({"table": table}, "table", list), columns, file)


def _select(values: Iterable[Any], columns: Columns, where: Path) -> _Cells:
    """Yield the cells of each object; objects may have different keys."""
    seen: dict[str, None] = {}
    first = None
    for row in values:
        if isinstance(row, dict):
            seen |= dict.fromkeys(row)
            first_of = {column: next(filter(row.__contains__, names), None) for column, names in columns.names.items()}
            yield {column: row[name] for column, name in first_of.items() if name is not None}
        else:
            reason = row if isinstance(row, OddRow) else OddRow(f"not a JSON object: {row!r:.40}")
            first = first or reason
            yield reason
    if first and not seen:
        raise ValueError(first)
    columns.find(list(seen), where)


def _parquet(file: Path, columns: Columns, inside: str | None) -> _Cells:
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


_READERS = {".csv": _csv, ".tsv": _csv, ".txt": _csv, ".jsonl": _json_lines, ".parquet": _parquet, ".json": _json}
