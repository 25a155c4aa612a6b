"""Tables on standard output: wrapped to a terminal, never to a pipe."""

from rich.console import Console
from rich.table import Table

_WIDE = 10_000


def print_table(table: Table) -> None:
    """Print ``table`` without trailing spaces; where nobody looks at a terminal, without wrapping."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDE)
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))
