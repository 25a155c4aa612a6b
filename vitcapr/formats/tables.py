"""A table for people, as CSV, Markdown, HTML and LaTeX; and sections of the first page, as JSON.

It has columns, rows of cells, a caption and notes.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from vitcapr.errors import printable
from vitcapr.files import write_json
from vitcapr.formats.records import read_record

NOTHING = "-"
"""The text of a cell without a number."""


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        text: a word, or a number as it is printed.
        low, high: the bounds of the number's interval; empty where it has none.
        notes: numbers of the table's notes, from 1.
        best: whether no other number of the column is better.
    """

    text: str
    low: str = ""
    high: str = ""
    notes: tuple[int, ...] = ()
    best: bool = False

    @property
    def interval(self) -> str:
        """The bounds in one text; empty without an interval."""
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
    """Return a number times ``scale`` with ``places`` decimals, and its interval; None and nan are no number."""

    def text(one: float | None) -> str:
        if one is None or math.isnan(one):
            return ""
        return f"{scale * one:{'+' if signed else ''}.{places}f}"

    return Cell(text(value), text(low), text(high)) if text(value) else Cell(NOTHING)


def row(*cells: Cell | str) -> tuple[Cell, ...]:
    """Return the cells of a row; words may be given as they are."""
    return tuple(Cell(cell) if isinstance(cell, str) else cell for cell in cells)


@dataclass(frozen=True)
class Table:
    """A table for people.

    Attributes:
        columns: the heading of each column.
        align: of each column, l for words or r for numbers; without it, all but the first column are numbers.
        caption: what the numbers are: one paragraph.
        notes: the texts that cells point at.
        name: a short name for files and for references in LaTeX.
        help: for each column, what its numbers mean, or nothing where the heading says it; empty for no help at all.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: str = ""
    caption: str = ""
    notes: tuple[str, ...] = ()
    name: str = ""
    help: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.align:
            object.__setattr__(self, "align", "l" + "r" * (len(self.columns) - 1))
        for one in (self.align, *self.rows):
            if len(one) != len(self.columns):
                raise ValueError(f"{len(one)} cells under {len(self.columns)} columns")


@dataclass(frozen=True)
class PageSection:
    """A section of the first page that a stage writes.

    Attributes:
        name: the anchor of the section in the page.
        look: sentences for the page's list "what to look at".
    """

    name: str
    heading: str
    note: str
    tables: Sequence[Table]
    look: Sequence[str] = ()


def write_page_section(path: Path, section: PageSection) -> None:
    write_json(path, asdict(section))


def read_page_section(path: Path) -> PageSection:
    return read_record(path, TypeAdapter(PageSection), "a section of the first page", "run the stage that writes it")


@dataclass
class Notes:
    """The notes of a table while it is made; the same words get one number."""

    written: list[str] = field(default_factory=list)

    def number(self, text: str) -> int:
        if text not in self.written:
            self.written.append(text)
        return self.written.index(text) + 1


def to_csv(table: Table) -> str:
    """Return the cells as they are printed; the texts of a row's notes in a column of their own, at the end."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*table.columns, "notes"])
    for row in table.rows:
        numbers = dict.fromkeys(number for cell in row for number in cell.notes)
        writer.writerow([*(cell.shown for cell in row), " ".join(table.notes[number - 1] for number in numbers)])
    return stream.getvalue()


def to_markdown(table: Table) -> str:
    """Title, caption, the cells with their intervals in parentheses, and the notes."""
    lines = [f"### {_markdown_escape(table.title)}", ""] if table.title else []
    lines += [_markdown_escape(table.caption), ""] if table.caption else []
    lines += [_markdown_line(table.columns), _markdown_line("---" if side == "l" else "---:" for side in table.align)]
    lines += [
        _markdown_line(" ".join([cell.shown, *(f"[{number}]" for number in cell.notes)]) for cell in row)
        for row in table.rows
    ]
    if table.notes:
        lines += ["", *(f"[{number}] {_markdown_escape(text)}  " for number, text in enumerate(table.notes, 1))]
    return "\n".join(lines) + "\n"


def to_page(tables: Sequence[Table], title: str = "", words: str = "") -> str:
    """Return a page of tables, below its title and a paragraph."""
    head = [f"## {_markdown_escape(title)}\n"] if title else []
    head += [f"{_markdown_escape(words)}\n"] if words else []
    return "\n".join([*head, *map(to_markdown, tables)])


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_markdown_escape(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _markdown_escape(text: str) -> str:
    """``<pad>`` is a word here, and no tag; what stands between backticks is left as it is. A name is one line."""
    parts = printable(text).replace("\n", " ").split("`")
    return "`".join(part if odd % 2 else part.replace("<", "\\<") for odd, part in enumerate(parts))


_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "{}$&#_%"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        "`": r"\textasciigrave{}",
        "→": r"$\rightarrow$",
        "±": r"$\pm$",
    }
)
_MAY_BREAK = re.compile(r"(?<=\|)|(?<=,)(?=[^\s\d])")
"""A protocol has no spaces to break a line at."""


def escape(text: str) -> str:
    return r"\allowbreak{}".join(part.translate(_SPECIAL) for part in _MAY_BREAK.split(text))


def to_latex(table: Table) -> str:
    """Return a ``table*`` float; it needs the packages booktabs, graphicx, textcomp and fontenc (T1).

    A table that is wider than the page is scaled down to it.
    """
    lines = [
        r"\begin{table*}[!htbp]",
        r"\centering",
        rf"\caption{{{escape(f'{table.title}. {table.caption}')}}}",
        rf"\label{{tab:{table.name}}}",
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{table.align}}}",
        r"\toprule",
        _latex_line(map(escape, table.columns)),
        r"\midrule",
        *(_latex_line(map(_latex_cell, row)) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}}",
        *(
            rf"\par\footnotesize\raggedright{_mark(number)} {escape(text)}"
            for number, text in enumerate(table.notes, 1)
        ),
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def to_document(tables: Sequence[Table], title: str) -> str:
    """Return all tables in a document that compiles as it stands."""
    lines = [
        r"\documentclass[a4paper]{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[utf8]{inputenc}",
        r"\usepackage{textcomp}",
        r"\usepackage{booktabs}",
        r"\usepackage{graphicx}",
        r"\usepackage[landscape,margin=15mm]{geometry}",
        r"\begin{document}",
        rf"\section*{{{escape(title)}}}",
        # LaTeX holds only so many floats back.
        *(to_latex(table) + r"\clearpage" for table in tables if table.rows),
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: Cell) -> str:
    return escape(cell.shown) + (_mark(*cell.notes) if cell.notes else "")


def _mark(*numbers: int) -> str:
    return rf"\textsuperscript{{{','.join(map(str, numbers))}}}"
