"""Tables on standard output: wrapped on a terminal, not wrapped in a pipe."""

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from vitcapr.errors import printable
from vitcapr.formats.tables import Cell, Table

_WIDE = 10_000


def to_rich(table: Table) -> RichTable:
    """Headings wrap at spaces. Half the interval's width stands below each number: eight columns fit in 80
    characters."""
    result = RichTable(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for heading, side in zip(table.columns, table.align, strict=True):
        if side == "l":
            result.add_column(heading, overflow="fold", min_width=10)
        else:
            width = max(6, *map(len, heading.split()))
            result.add_column(heading, justify="right", min_width=width, max_width=width)
    for row in table.rows:
        result.add_row(*map(_number_over_spread, row))
    return result


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


def _number_over_spread(cell: Cell) -> Text:
    if not cell.low:
        return Text(printable(cell.text))
    places = len(cell.high.partition(".")[2])
    return Text.assemble(cell.text, "\n", (f"±{(float(cell.high) - float(cell.low)) / 2:.{places}f}", "dim"))
