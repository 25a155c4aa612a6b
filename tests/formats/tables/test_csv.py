import csv
import io

from vitcapr.formats.tables import Table, to_csv


def test_cells_as_they_are_and_notes_in_words(table: Table) -> None:
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows == [
        ["who", "R@1", "notes"],
        ["paper_1", "51.24 (50.1-52.3)", "second first 100 %"],
        ["a|<pad>, 5,000", "-", ""],
    ]
