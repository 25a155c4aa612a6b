"""A table: columns, rows of cells, caption and notes. The other modules of this package write it in a format."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

NOTHING = "-"
"""The text of a cell without a number."""


class Cell(NamedTuple):
    """Attributes:
    text: a word, or a number as it is printed.
    low, high: the bounds of the number's interval; empty where it has none.
    notes: numbers of the table's notes, from 1.
    """

    text: str
    low: str = ""
    high: str = ""
    notes: tuple[int, ...] = ()

    @property
    def interval(self) -> str:
        """The bounds in one text; empty where there is no interval."""
        between = " to " if self.low[:1] in ("+", "-") else "-"
        return f"{self.low}{between}{self.high}" if self.low else ""

    @property
    def shown(self) -> str:
        """The text with its interval in parentheses."""
        return f"{self.text} ({self.interval})" if self.low else self.text


def number(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    scale: float = 1,
    places: int = 1,
    signed: bool = False,
) -> Cell:
    """A number times ``scale`` with ``places`` decimals, and its interval; None and nan are no number."""

    def text(one: float | None) -> str:
        if one is None or math.isnan(one):
            return ""
        return f"{scale * one:{'+' if signed else ''}.{places}f}"

    return Cell(text(value), text(low), text(high)) if text(value) else Cell(NOTHING)


def row(*cells: Cell | str) -> tuple[Cell, ...]:
    """The cells of a row; words may be given as they are."""
    return tuple(Cell(cell) if isinstance(cell, str) else cell for cell in cells)


@dataclass(frozen=True)
class Table:
    """Attributes:
    columns: the heading of each column.
    align: of each column, l for words or r for numbers; without it, all but the first column are numbers.
    caption: what the numbers are: one paragraph.
    notes: the texts that cells point at.
    name: a short name for files and for references in LaTeX.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: str = ""
    caption: str = ""
    notes: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        if not self.align:
            object.__setattr__(self, "align", "l" + "r" * (len(self.columns) - 1))
        for one in (self.align, *self.rows):
            if len(one) != len(self.columns):
                raise ValueError(f"{len(one)} cells under {len(self.columns)} columns")


@dataclass
class Notes:
    """The notes of a table while it is made; the same words get one number."""

    written: list[str] = field(default_factory=list)

    def number(self, text: str) -> int:
        if text not in self.written:
            self.written.append(text)
        return self.written.index(text) + 1
