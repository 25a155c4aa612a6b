"""A section of the first page that a stage writes: a heading, a note and tables, as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vitcapr.files import read_json, write_json
from vitcapr.formats.tables import Cell, Table


@dataclass(frozen=True)
class PageSection:
    """Attributes:
    name: the anchor of the section in the page.
    """

    name: str
    heading: str
    note: str
    tables: Sequence[Table]


def write_page_section(path: Path, section: PageSection) -> None:
    write_json(path, asdict(section))


def read_page_section(path: Path) -> PageSection:
    content = read_json(path)
    return PageSection(**{**content, "tables": [_table(**table) for table in content["tables"]]})


def _table(rows: list[list[list[Any]]], **values: Any) -> Table:
    cells = [tuple(Cell(text, low, high, tuple(notes), best) for text, low, high, notes, best in row) for row in rows]
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Table(rows=tuple(cells), **(values | lists))
