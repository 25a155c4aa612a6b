"""Printed tables in LaTeX: booktabs, one float each, and a document that holds them all."""

import re
from collections.abc import Sequence

from vitcapr.metrics.printed_table import PrintedTable

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "→": r"$\rightarrow$",
}
_MAY_BREAK = re.compile(r"(?<=\|)|(?<=,)(?=[^\s\d])")
"""A protocol has no spaces to break a line at."""


def escape(text: str) -> str:
    parts = _MAY_BREAK.split(text)
    return r"\allowbreak{}".join("".join(_SPECIAL.get(character, character) for character in part) for part in parts)


def to_latex(table: PrintedTable) -> str:
    """A ``table*`` float; it needs the packages booktabs, graphicx and fontenc (T1).

    A table that is wider than the page is scaled down to it.
    """
    rows = []
    for row in table.rows:
        cells = []
        for cell in row:
            marks = rf"\textsuperscript{{{','.join(map(str, cell.notes))}}}" if cell.notes else ""
            cells.append(escape(cell.text) + marks)
        rows.append(" & ".join(cells) + r" \\")
    notes = [
        rf"\par\footnotesize\raggedright\textsuperscript{{{number}}} {escape(text)}"
        for number, text in enumerate(table.notes, 1)
    ]
    lines = [
        r"\begin{table*}[tbp]",
        r"\centering",
        rf"\caption{{{escape(table.title)}. {escape(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{table.align}}}",
        r"\toprule",
        " & ".join(map(escape, table.columns)) + r" \\",
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}}",
        *notes,
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def document(title: str, tables: Sequence[PrintedTable]) -> str:
    """All tables in a document that compiles as it stands."""
    lines = [
        r"\documentclass[a4paper]{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[utf8]{inputenc}",
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
