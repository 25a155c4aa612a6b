"""Tables in LaTeX: booktabs, one float each, and a document that holds them all."""

import re
from collections.abc import Iterable, Sequence

from vitcapr.formats.tables.table import Cell, Table

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
    """A ``table*`` float; it needs the packages booktabs, graphicx, textcomp and fontenc (T1).

    A table that is wider than the page is scaled down to it.
    """
    lines = [
        r"\begin{table*}[tbp]",
        r"\centering",
        rf"\caption{{{escape(f'{table.title}. {table.caption}')}}}",
        rf"\label{{tab:{table.name}}}",
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{table.align}}}",
        r"\toprule",
        _line(map(escape, table.columns)),
        r"\midrule",
        *(_line(map(_cell, row)) for row in table.rows),
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
    """All tables in a document that compiles as it stands."""
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
        *(to_latex(table) + r"\clearpage" for table in tables),
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: Cell) -> str:
    return escape(cell.shown) + (_mark(*cell.notes) if cell.notes else "")


def _mark(*numbers: int) -> str:
    return rf"\textsuperscript{{{','.join(map(str, numbers))}}}"
