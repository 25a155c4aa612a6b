"""Tables in Markdown."""

from collections.abc import Iterable, Sequence

from vitcapr.formats.tables.table import Table


def to_markdown(table: Table) -> str:
    """Title, caption, the cells with their intervals in parentheses, and the notes."""
    lines = [f"### {_escape(table.title)}", ""] if table.title else []
    lines += [_escape(table.caption), ""] if table.caption else []
    lines += [_line(table.columns), _line("---" if side == "l" else "---:" for side in table.align)]
    lines += [
        _line(" ".join([cell.shown, *(f"[{number}]" for number in cell.notes)]) for cell in row) for row in table.rows
    ]
    if table.notes:
        lines += ["", *(f"[{number}] {_escape(text)}  " for number, text in enumerate(table.notes, 1))]
    return "\n".join(lines) + "\n"


def to_page(tables: Sequence[Table], title: str = "", words: str = "") -> str:
    """A page of tables, below its title and a paragraph."""
    head = [f"## {_escape(title)}\n"] if title else []
    head += [f"{_escape(words)}\n"] if words else []
    return "\n".join([*head, *map(to_markdown, tables)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_escape(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _escape(text: str) -> str:
    """``<pad>`` is a word here, and no tag; what stands between backticks is left as it is."""
    parts = text.split("`")
    return "`".join(part if odd % 2 else part.replace("<", "\\<") for odd, part in enumerate(parts))
