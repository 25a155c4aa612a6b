"""``history.csv``: a row for each epoch of a training."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import write_text

History = Sequence[Mapping[str, float | str]]

_NEEDED = ("epoch", "train_loss")
_TRAINED = ("train_loss", "train_reward")
"""Every epoch has one of them."""
_COLUMNS = ("epoch", "phase", "train_loss", "validation_loss", "learning_rate")
"""Of a history without an epoch."""
_WORDS = ("phase",)
"""Every other column holds numbers."""
_REMEDY = "run the training stage"


def write_history(path: Path, history: History) -> None:
    """Write a row for each epoch; the header alone where nothing was trained."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(history[0] if history else _COLUMNS), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    write_text(path, text.getvalue())


def read_history(path: Path) -> pd.DataFrame:
    """``epoch``, ``train_loss`` and what else was recorded; NaN where an epoch has no such number.

    Raises:
        UserError: the file is missing, is not a history of training, or has no epoch.
    """
    what = "not a history of training"
    try:
        table = pd.read_csv(path)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=_REMEDY) from error
    except (OSError, ValueError) as error:
        raise UserError(f"{what}: {error}", where=path, remedy=f"{_REMEDY} again") from error
    if not set(_NEEDED) <= set(table.columns) or table.empty:
        raise UserError(f"{what}: it needs epoch and train_loss", where=path, remedy=f"{_REMEDY} again")
    for column in table.columns.difference(list(_WORDS)):
        if not pd.api.types.is_numeric_dtype(table[column]):
            raise UserError(f"{what}: {column} is not a number", where=path, remedy=f"{_REMEDY} again")
    if table["epoch"].isna().any() or (table["epoch"].diff()[1:] <= 0).any():
        raise UserError(f"{what}: its epochs do not increase", where=path, remedy=f"{_REMEDY} again")
    if table[table.columns.intersection(list(_TRAINED))].isna().all(axis=1).any():
        raise UserError(f"{what}: an epoch has neither loss nor reward", where=path, remedy=f"{_REMEDY} again")
    return table
