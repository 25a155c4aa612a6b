"""The numbers of a paper's LaTeX table against a publication."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from vitcapr.extensions.publications.publication import SUMMARY
from vitcapr.formats.scores import read_summary
from vitcapr.formats.tables import escape
from vitcapr.report.score_tables import score_tables

_MACRO = re.compile(r"\\textsuperscript\{[^}]*\}|\\allowbreak\{\}|\\textbf|\\(?:top|mid|bottom)rule|[{}]")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def check_table(path: Path, experiment: Path, digest: str, say: Callable[[str], object]) -> Iterator[str]:
    """Yield the cells of a LaTeX file that differ from the tables of a publication.

    A row is known by its first cell, a column by its heading; rows, columns and intervals may be left out.
    """
    text = path.read_text(encoding="utf-8")
    marks = re.findall(r"^% vitcapr publication ([0-9a-f]{64})$", text, re.MULTILINE)
    if digest not in marks:
        yield f"{path}: it names {f'the publication {marks[0]}' if marks else 'no publication'}, this is {digest}"
    known, equal = dict[tuple[str, str], set[str]](), 0
    for table in score_tables(read_summary(experiment / SUMMARY)):
        for row in table.rows:
            for heading, cell in list(zip(table.columns, row, strict=True))[1:]:
                known.setdefault((_plain(row[0].text), _plain(heading)), set()).add(cell.shown)
    for tabular in text.split(r"\begin{tabular}")[1:]:
        body = tabular.partition(r"\end{tabular}")[0].partition("\n")[2]
        lines = [_cells(line) for line in body.split(r"\\") if "&" in line]
        for first, *cells in lines[1:]:
            for heading, printed in zip(lines[0][1:], cells, strict=False):
                stated, own = known.get((first, heading), set()), _NUMBER.findall(printed)
                if any(own and own == _NUMBER.findall(one)[: len(own)] for one in stated):
                    equal += 1
                elif own:
                    right = " or ".join(sorted(stated)) or "no such number"
                    yield f"{path}: {first}, {heading}: {printed}, the publication has {right}"
    say(f"{path}: {equal} cells equal to those of the publication")


def _plain(text: str) -> str:
    return _cells(escape(text).replace("&", ""))[0]


def _cells(line: str) -> list[str]:
    return [" ".join(_MACRO.sub("", cell).split()) for cell in line.replace(r"\&", "").split("&")]
