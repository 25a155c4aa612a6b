import csv
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.metrics.latex import document, escape, to_latex
from vitcapr.metrics.printed_table import Entry, Notes, PrintedTable, to_csv, to_markdown


def table(**changes: Any) -> PrintedTable:
    values: dict[str, Any] = {
        "name": "t",
        "title": "A & B",
        "caption": "Protocol: tok:ptb|refs:5,closest.",
        "columns": ("who", "R@1"),
        "rows": ((Entry("paper_1", (2,)), Entry("51.24", (1, 2))), (Entry("a|<pad>, 5,000"), Entry("-"))),
        "align": "lr",
        "notes": ("first 100 %", "second"),
    }
    return PrintedTable(**(values | changes))


def test_markdown() -> None:
    assert to_markdown(table()).splitlines() == [
        "### A & B",
        "",
        "Protocol: tok:ptb|refs:5,closest.",
        "",
        "| who | R@1 |",
        "| --- | ---: |",
        "| paper_1 [2] | 51.24 [1] [2] |",
        "| a\\|\\<pad>, 5,000 | - |",
        "",
        "[1] first 100 %  ",
        "[2] second  ",
    ]


def test_csv_keeps_cells_as_they_are_and_notes_in_words() -> None:
    rows = list(csv.reader(io.StringIO(to_csv(table()))))
    assert rows == [
        ["who", "R@1", "notes"],
        ["paper_1", "51.24", "second first 100 %"],
        ["a|<pad>, 5,000", "-", ""],
    ]


def test_cells_and_columns_must_agree() -> None:
    with pytest.raises(ValueError, match="1 cells under 2 columns"):
        table(rows=((Entry("x"),),))
    with pytest.raises(ValueError, match="3 cells under 2 columns"):
        table(align="lrr")


def test_the_same_words_are_one_note() -> None:
    notes = Notes()
    assert [notes.number(text) for text in ("a", "b", "a")] == [1, 2, 1]
    assert notes.written == ["a", "b"]


def test_latex_is_a_booktabs_float() -> None:
    lines = to_latex(table()).splitlines()
    assert lines[0] == r"\begin{table*}[tbp]"
    assert lines[-1] == r"\end{table*}"
    assert r"\caption{A \& B. Protocol: tok:ptb\textbar{}\allowbreak{}refs:5,\allowbreak{}closest.}" in lines
    body = lines[lines.index(r"\begin{tabular}{lr}") + 1 : lines.index(r"\end{tabular}}")]
    assert body == [
        r"\toprule",
        r"who & R@1 \\",
        r"\midrule",
        r"paper\_1\textsuperscript{2} & 51.24\textsuperscript{1,2} \\",
        r"a\textbar{}\allowbreak{}\textless{}pad\textgreater{}, 5,000 & - \\",
        r"\bottomrule",
    ]
    assert r"\par\footnotesize\raggedright\textsuperscript{1} first 100 \%" in lines


@given(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_escaped_text_holds_no_command_of_its_own(text: str) -> None:
    """What remains after our own commands and escaped characters is plain; braces balance."""
    escaped = escape(text)
    known = r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar|textquotedbl|allowbreak)\{\}"
    rest = re.sub(r"\\[{}$&#_%]", "", re.sub(known, "", escaped))
    assert not set(rest) & set('\\{}$&#_%~^<>|"')


def is_sound(source: str) -> bool:
    """Environments and braces open and close in order."""
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", source):
        if kind == "begin":
            opened.append(name)
        elif not opened or opened.pop() != name:
            return False
    bare = re.sub(r"\\[{}\\]", "", source)
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return not opened and depth == 0


def test_the_document_is_sound_and_loads_what_it_uses() -> None:
    source = document("A_B", [table(), table(name="u", columns=("a", "b → c"))])
    assert is_sound(source)
    assert not is_sound(source.replace(r"\end{tabular}", ""))
    for package in ("booktabs", "graphicx", "fontenc"):
        assert re.search(rf"\\usepackage(\[.*\])?\{{{package}\}}", source)
    assert re.findall(r"\\label\{(.*)\}", source) == ["tab:t", "tab:u"]
    assert r"b $\rightarrow$ c" in source
    assert source.isascii()
