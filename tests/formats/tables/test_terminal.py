import pytest
from rich.console import Console

from vitcapr.formats.tables import Cell, Table, row
from vitcapr.formats.terminal import print_listing, to_rich


def test_half_the_interval_is_shown_below_the_number(table: Table) -> None:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(to_rich(table))
    lines = [line.split() for line in capture.get().splitlines() if line.strip()]
    assert lines[2:4] == [["paper_1", "51.24"], ["±1.1"]]


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
