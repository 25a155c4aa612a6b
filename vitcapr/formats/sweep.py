"""``sweep.csv``: a row for each learning rate of a sweep, for people."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitcapr.files import write_text

SWEEP = "sweep.csv"
COLUMNS = ("learning_rate", "best_epoch", "validation_loss", "validation_rsum", "chosen")


def write_sweep(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write ``COLUMNS``, and no other, of each row; the header alone where nothing was trained."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())
