"""A row of the user's table, and the names of its columns."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError

KEY = "data.table.columns"


@dataclass(frozen=True, slots=True)
class Record:
    """A row as it is written.

    Attributes:
        place: the file and the number of the row, for ``rejected.csv``.
        cells: by the names of the columns.
        folder: the folder that the path of the image is relative to, relative to the image root: empty, or ``train/``.
        split: the split of the whole file, for a row without a split of its own.
    """

    place: str
    cells: Mapping[str, Any]
    folder: str = ""
    split: str | None = None

    def text(self, column: str | None) -> str:
        """The cell of a column, without spaces around it; empty if there is none."""
        cell = None if column is None else self.cells.get(column)
        return "" if cell is None else str(cell).strip()


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns; None: one of the usual names. Only image and caption have to be there."""

    image: str | None = None
    caption: str | None = None
    language: str | None = None
    split: str | None = None

    def found(self, records: Iterable[Record], where: Path) -> "Columns":
        """The names that the table has; None for a column that it does not have.

        Raises:
            UserError: a named column, or the column of images or captions, is missing.
        """
        names = {name: None for record in records for name in record.cells}
        return Columns(
            **{field.name: _find(field.name, getattr(self, field.name), list(names), where) for field in fields(self)}
        )


USUAL = {
    "image": ("image", "file_name", "filename", "image_path", "path", "file"),
    "caption": ("caption", "captions", "text"),
    "language": ("language",),
    "split": ("split",),
}


def _find(column: str, named: str | None, names: list[str], where: Path) -> str | None:
    wanted = USUAL[column] if named is None else (named,)
    for name in wanted:
        if name in names:
            return name
    if named is None and column not in ("image", "caption"):
        return None
    close = next(_close(wanted, names), None)
    guess = f"did you mean '{close}'? " if close else ""
    raise UserError(
        f"{KEY}.{column}: the table has no column {' or '.join(map(repr, wanted))}",
        where=where,
        remedy=f"{guess}name the column with {KEY}.{column}; there are {', '.join(names) or 'none'}",
    )


def _close(wanted: Iterable[str], names: list[str]) -> Iterator[str]:
    by_lower = {name.lower(): name for name in names}
    for name in wanted:
        yield from (by_lower[close] for close in difflib.get_close_matches(name, by_lower, n=1))
