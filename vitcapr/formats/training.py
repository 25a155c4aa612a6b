"""What a training writes beside its weights: ``history.csv``, ``sweep.csv``, ``gpu.csv``."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import write_text

History = Sequence[Mapping[str, float | str]]

_NEEDED = ("epoch", "train_loss")
_TRAINED = ("train_loss", "train_reward")
"""Every epoch has one of them."""
_HISTORY_COLUMNS = ("epoch", "phase", "train_loss", "validation_loss", "learning_rate")
"""Of a history without an epoch."""
_WORDS = ("phase",)
"""Every other column holds numbers."""
_REMEDY = "run the training stage"


def write_history(path: Path, history: History) -> None:
    """Write a row for each epoch; the header alone where nothing was trained."""
    text = io.StringIO()
    writer = csv.DictWriter(
        text, fieldnames=list(history[0] if history else _HISTORY_COLUMNS), restval="", lineterminator="\n"
    )
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


SWEEP = "sweep.csv"
_SWEEP_COLUMNS = ("learning_rate", "best_epoch", "validation_loss", "validation_rsum", "chosen")


def write_sweep(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write ``_SWEEP_COLUMNS``, and no other, of each row; the header alone where nothing was trained."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=_SWEEP_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


GPU_COLUMNS = ("seconds", "gpu_percent", "memory_gib", "memory_total_gib")


@dataclass(frozen=True, eq=False)
class GpuUse:
    """The device of a training, and its samples: ``seconds``, ``gpu_percent``, ``memory_gib``, ``memory_total_gib``."""

    device: str
    samples: pd.DataFrame


def gpu_csv(device: str, rows: Sequence[str] = ()) -> str:
    """The text of the file: a comment that names the device, the header, and the rows, each a line of numbers."""
    return "\n".join([f"# {device}", ",".join(GPU_COLUMNS), *rows]) + "\n"


def gpu_row(values: Sequence[float | None]) -> str:
    """A row of :func:`gpu_csv`; None where the GPU does not tell a number."""
    return ",".join("" if value is None else f"{value:.3f}" for value in values)


def whole_rows(path: Path) -> tuple[str | None, list[str]]:
    """The device and the whole rows of a file that a training may still be writing, or was killed while it did."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        return None, []
    if len(lines) < 2 or not lines[0].startswith("# "):
        return None, []
    whole = [line.rstrip("\n") for line in lines[2:] if line.endswith("\n")]
    return lines[0][2:].rstrip("\n"), [row for row in whole if row.count(",") == len(GPU_COLUMNS) - 1]


def read_gpu_use(path: Path) -> GpuUse:
    """Raises:
    UserError: the file is missing or is not a table of GPU use.
    """
    what, remedy = "not a table of GPU use", "run the training stage"
    try:
        first, _, _ = path.read_text(encoding="utf-8").partition("\n")
        samples = pd.read_csv(path, comment="#", dtype=float)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except (OSError, ValueError) as error:
        raise UserError(f"{what}: {error}", where=path, remedy=f"{remedy} again") from error
    if not first.startswith("# ") or tuple(samples.columns) != GPU_COLUMNS:
        raise UserError(what, where=path, remedy=f"{remedy} again")
    values = samples.to_numpy()
    if np.isinf(values).any() or (values < 0).any() or samples["seconds"].isna().any():
        raise UserError(f"{what}: a number is negative, infinite or missing", where=path, remedy=f"{remedy} again")
    return GpuUse(first.removeprefix("# "), samples)
