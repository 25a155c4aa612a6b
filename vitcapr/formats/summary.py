"""``summary.csv``: the scores of experiments in one tidy table, a row a score."""

from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import write_text
from vitcapr.formats.tables.csv import frame_to_csv

COLUMNS = (
    "experiment", "dataset", "split", "model", "decoding", "metric", "value", "low", "high", "n", "protocol",
)  # fmt: skip
_TEXT = ("experiment", "dataset", "split", "model", "decoding", "metric", "protocol")
_NUMBERS = ("value", "low", "high")
_NO_SCORE = {column: [""] for column in _NUMBERS}


def write_summary(path: Path, table: pd.DataFrame) -> None:
    write_text(path, frame_to_csv(table))


def read_summary(path: Path | BinaryIO) -> pd.DataFrame:
    """The columns ``COLUMNS``; NaN where there is no value or no interval.

    Raises:
        UserError: the file is missing, has other columns, or a number is none.
    """
    try:
        table = pd.read_csv(path, dtype=dict.fromkeys(_TEXT, str), keep_default_na=False, na_values=_NO_SCORE)
        if tuple(table.columns) != COLUMNS:
            raise ValueError(f"its columns should be {', '.join(COLUMNS)}")
        table = typed(table)
        if np.isinf(table[list(_NUMBERS)].to_numpy()).any() or (table["n"] < 0).any():
            raise ValueError("a score is infinite or n is negative")
        return table
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy="run the stage that makes it") from error
    except (OSError, ValueError) as error:
        raise UserError(
            "not a summary of scores", where=path, remedy=f"delete it and make it again ({error})"
        ) from error


def typed(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` with the types of its numbers."""
    return table.astype({"value": float, "low": float, "high": float, "n": int})
