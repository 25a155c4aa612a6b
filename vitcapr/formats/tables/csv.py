"""Tables as CSV: printed cells, or values with all digits."""

import csv
import io
from typing import TYPE_CHECKING

from vitcapr.formats.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd


def to_csv(table: Table) -> str:
    """The cells as they are printed; the texts of a row's notes in a column of their own, at the end."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*table.columns, "notes"])
    for row in table.rows:
        numbers = dict.fromkeys(number for cell in row for number in cell.notes)
        writer.writerow([*(cell.shown for cell in row), " ".join(table.notes[number - 1] for number in numbers)])
    return stream.getvalue()


def frame_to_csv(frame: "pd.DataFrame") -> str:
    """The values of a data frame with all their digits, without its index."""
    return frame.to_csv(index=False, lineterminator="\n")
