"""A table as it will be printed: text in cells, a caption, and numbered notes; as Markdown and CSV."""

import csv
import io
from dataclasses import dataclass, field
from typing import NamedTuple

from vitcapr.metrics.table import markdown_row

NOTHING = "-"
"""Where nobody has a number."""


class Entry(NamedTuple):
    text: str
    notes: tuple[int, ...] = ()
    """Numbers of the table's notes, from 1."""


@dataclass(frozen=True)
class PrintedTable:
    """Attributes:
    align: of each column, l for words or r for numbers.
    """

    name: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    align: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in (self.align, *self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells under {len(self.columns)} columns")


@dataclass
class Notes:
    """The notes of one table; the same words have one number."""

    written: list[str] = field(default_factory=list)

    def number(self, text: str) -> int:
        if text not in self.written:
            self.written.append(text)
        return self.written.index(text) + 1


def to_markdown(table: PrintedTable) -> str:
    lines = [f"### {table.title}", "", table.caption, "", markdown_row(table.columns)]
    lines.append(markdown_row(["---" if side == "l" else "---:" for side in table.align]))
    for row in table.rows:
        lines.append(markdown_row([" ".join([cell.text, *(f"[{note}]" for note in cell.notes)]) for cell in row]))
    if table.notes:
        lines += ["", *(f"[{number}] {text}  " for number, text in enumerate(table.notes, 1))]
    # <pad> is a word here, and no tag.
    return "\n".join(lines).replace("<", "\\<") + "\n"


def to_csv(table: PrintedTable) -> str:
    """The cells as they are; the texts of a row's notes in a column of their own, at the end."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*table.columns, "notes"])
    for row in table.rows:
        numbers = dict.fromkeys(note for cell in row for note in cell.notes)
        writer.writerow([*(cell.text for cell in row), " ".join(table.notes[number - 1] for number in numbers)])
    return stream.getvalue()
