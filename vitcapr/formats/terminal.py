"""Tables on standard output: wrapped on a terminal, not wrapped in a pipe."""

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from vitcapr.errors import printable
from vitcapr.formats.tables import Table

_WIDE = 10_000


def to_rich(table: Table) -> RichTable:
    """Return the table for a terminal.

    Headings wrap at spaces. The interval stands below each number: eight columns fit in 80 characters.
    """
    result = RichTable(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for heading, side in zip(table.columns, table.align, strict=True):
        if side == "l":
            result.add_column(heading, overflow="fold", min_width=10)
        else:
            width = max(6, *map(len, heading.split()))
            result.add_column(heading, justify="right", min_width=width, max_width=width)
    for row in table.rows:
        result.add_row(*(Text(printable(cell.text)) for cell in row))
        if any(cell.low for cell in row):
            result.add_row("  from", *(cell.low for cell in row[1:]), style="dim")
            result.add_row("  to", *(cell.high for cell in row[1:]), style="dim")
    return result


def print_tables(console: Console, tables: Iterable[Table]) -> None:
    """Each with its title and caption, after an empty line."""
    for table in tables:
        console.print()
        console.print(Text("\n".join(filter(None, (table.title, table.caption)))))
        console.print(to_rich(table))


def to_listing(table: Table) -> RichTable:
    """Rows without rules: only the last column wraps, and only in a terminal; headings where there are any."""
    result = RichTable(box=None, pad_edge=False, header_style="bold", show_header=any(table.columns))
    for place, (heading, side) in enumerate(zip(table.columns, table.align, strict=True), 1):
        result.add_column(heading, justify="right" if side == "r" else "left", no_wrap=place < len(table.columns))
    for row in table.rows:
        result.add_row(*(Text(printable(cell.shown)) for cell in row))
    return result


def print_listing(table: Table) -> None:
    """Print without trailing spaces; where nobody looks at a terminal, without wrapping."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDE)
    with console.capture() as capture:
        console.print(to_listing(table))
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))
