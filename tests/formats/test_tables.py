"""Tables: numbers with intervals, and the formats in which they are written."""

import csv
import io
import math
import re
import string
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from vitcapr.formats.page import write_page
from vitcapr.formats.tables import (
    Cell,
    Notes,
    Table,
    escape,
    number,
    row,
    to_csv,
    to_document,
    to_latex,
    to_markdown,
    to_page,
)
from vitcapr.formats.terminal import print_listing, to_rich


@pytest.fixture
def table() -> Table:
    """With characters that formats take for their own."""
    return Table(
        "A & B",
        ("who", "R@1"),
        (
            (Cell("paper_1", notes=(2,)), Cell("51.24", "50.1", "52.3", (1, 2))),
            (Cell("a|<pad>, 5,000"), Cell("-")),
        ),
        caption="Protocol: tok:ptb|refs:5,closest.",
        notes=("first 100 %", "second"),
        name="t",
    )


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (number(0.5124, 0.5, 0.525, scale=100), "51.2 (50.0-52.5)"),
        (number(3, scale=1, places=0), "3"),
        (number(0.005, -0.005, 0.015, scale=100), "0.5 (-0.5 to 1.5)"),
        (number(0.02, 0.01, 0.03, scale=100, places=2, signed=True), "+2.00 (+1.00 to +3.00)"),
        (number(0.5, math.nan, math.nan), "0.5"),
        (number(math.nan, 0.1, 0.2), "-"),
        (number(None), "-"),
    ],
)
def test_a_number_with_its_interval(cell: Cell, shown: str) -> None:
    assert cell.shown == shown


def test_cells_and_columns_must_agree() -> None:
    with pytest.raises(ValueError, match="1 cells under 2 columns"):
        Table("", ("a", "b"), (row("x"),))
    with pytest.raises(ValueError, match="3 cells under 2 columns"):
        Table("", ("a", "b"), (), align="lrr")


def test_the_same_words_are_one_note() -> None:
    notes = Notes()
    assert [notes.number(text) for text in ("a", "b", "a")] == [1, 2, 1]
    assert notes.written == ["a", "b"]


def test_cells_as_they_are_and_notes_in_words(table: Table) -> None:
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows == [
        ["who", "R@1", "notes"],
        ["paper_1", "51.24 (50.1-52.3)", "second first 100 %"],
        ["a|<pad>, 5,000", "-", ""],
    ]


def test_markdown(table: Table) -> None:
    assert to_markdown(table).splitlines() == [
        "### A & B",
        "",
        "Protocol: tok:ptb|refs:5,closest.",
        "",
        "| who | R@1 |",
        "| --- | ---: |",
        "| paper_1 [2] | 51.24 (50.1-52.3) [1] [2] |",
        "| a\\|\\<pad>, 5,000 | - |",
        "",
        "[1] first 100 %  ",
        "[2] second  ",
    ]


def test_a_bare_table_is_its_rows() -> None:
    assert to_markdown(Table("", ("a",), (row("`<b>`"),))) == "| a |\n| --- |\n| `<b>` |\n"
    assert to_markdown(Table("", ("\x1b[2J",), (row("a\nb\u202e"),))) == "| \\x1b[2J |\n| --- |\n| a b\\u202e |\n"


def test_html_has_the_text_of_the_markdown_and_none_of_its_tags(table: Table, tmp_path: Path) -> None:
    write_page([tmp_path / "a.md", tmp_path / "a.html"], to_page([table], "<b>"))
    assert (tmp_path / "a.md").read_text() == to_page([table], "<b>")
    html = (tmp_path / "a.html").read_text()
    assert html.count("<h1>&lt;b&gt;</h1>") == html.count("<title>&lt;b&gt;</title>") == 1
    assert html.count('<a href="../index.html">First page</a>') == 1
    assert '<td class="l">a|&lt;pad&gt;, 5,000</td>' in html


def test_a_page(table: Table) -> None:
    page = to_page([table, table], "Title", "Words.")
    assert page.startswith("## Title\n\nWords.\n\n### A & B\n")
    assert page.count(to_markdown(table)) == 2


def test_a_booktabs_float(table: Table) -> None:
    lines = to_latex(table).splitlines()
    assert lines[0] == r"\begin{table*}[!htbp]"
    assert lines[-1] == r"\end{table*}"
    assert r"\caption{A \& B. Protocol: tok:ptb\textbar{}\allowbreak{}refs:5,\allowbreak{}closest.}" in lines
    body = lines[lines.index(r"\begin{tabular}{lr}") + 1 : lines.index(r"\end{tabular}}")]
    assert body == [
        r"\toprule",
        r"who & R@1 \\",
        r"\midrule",
        r"paper\_1\textsuperscript{2} & 51.24 (50.1-52.3)\textsuperscript{1,2} \\",
        r"a\textbar{}\allowbreak{}\textless{}pad\textgreater{}, 5,000 & - \\",
        r"\bottomrule",
    ]
    assert r"\par\footnotesize\raggedright\textsuperscript{1} first 100 \%" in lines


@given(st.text(alphabet=f" {string.ascii_letters}{string.digits}{string.punctuation}"))
def test_escaped_text_holds_no_command_of_its_own(text: str) -> None:
    """What remains after our own commands and escaped characters is plain; braces balance."""
    escaped = escape(text)
    known = r"\\(text(backslash|asciitilde|asciicircum|less|greater|bar|quotedbl|asciigrave)|allowbreak)\{\}"
    rest = re.sub(r"\\[{}$&#_%]", "", re.sub(known, "", escaped))
    assert not set(rest) & set('\\{}$&#_%~^<>|"`')


def test_the_document_loads_the_packages_that_it_uses(table: Table) -> None:
    source = to_document([table, replace(table, name="u", columns=("a ± 1", "b → c"))], "A_B")
    for package in ("booktabs", "graphicx", "fontenc", "textcomp"):
        assert re.search(rf"\\usepackage(\[.*\])?\{{{package}\}}", source)
    assert re.findall(r"\\label\{(.*)\}", source) == ["tab:t", "tab:u"]
    assert r"a $\pm$ 1 & b $\rightarrow$ c" in source
    assert source.isascii()


def test_the_bounds_are_shown_below_the_number(table: Table) -> None:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(to_rich(table))
    lines = [line.split() for line in capture.get().splitlines() if line.strip()]
    assert lines[2:5] == [["paper_1", "51.24"], ["from", "50.1"], ["to", "52.3"]]


def test_markup_in_a_cell_is_text() -> None:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(to_rich(Table("", ("a", "b"), (row("[red]x", Cell("[1]", "1", "2")),))))
    assert "[red]x" in capture.get()


def test_a_listing_to_a_pipe_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_listing(Table("", ("", "", ""), (row("a", "1.5", "w " * 200), row("", "10.5", "v")), align="lrl"))
    first, second = capsys.readouterr().out.splitlines()
    assert first == "a   1.5  " + ("w " * 200).rstrip()
    assert second == "   10.5  v"
