"""A section of the first page that a stage writes: a heading, a note and tables, as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from vitcapr.files import write_json
from vitcapr.formats.records import read_record
from vitcapr.formats.tables import Table


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
    return read_record(path, TypeAdapter(PageSection), "a section of the first page", "run the stage that writes it")
