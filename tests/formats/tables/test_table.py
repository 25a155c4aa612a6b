import math

import pytest

from vitcapr.formats.tables import Cell, Notes, Table, number, row


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


def test_columns_after_the_first_are_numbers() -> None:
    assert Table("", ("a", "b", "c"), ()).align == "lrr"


def test_cells_and_columns_must_agree() -> None:
    with pytest.raises(ValueError, match="1 cells under 2 columns"):
        Table("", ("a", "b"), (row("x"),))
    with pytest.raises(ValueError, match="3 cells under 2 columns"):
        Table("", ("a", "b"), (), align="lrr")


def test_the_same_words_are_one_note() -> None:
    notes = Notes()
    assert [notes.number(text) for text in ("a", "b", "a")] == [1, 2, 1]
    assert notes.written == ["a", "b"]
