"""Files that a training writes beside its weights: ``history.csv``, ``sweep.csv``, ``gpu.csv``."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vitcapr.files import write_text
from vitcapr.formats.records import reading

History = Sequence[Mapping[str, float | str]]

SWEEP = "sweep.csv"
GPU_COLUMNS = ("seconds", "gpu_percent", "memory_gib", "memory_total_gib")
_SWEEP_COLUMNS = ("learning_rate", "best_epoch", "validation_loss", "validation_rsum", "chosen")
_NO_EPOCH = ("epoch", "phase", "train_loss", "validation_loss", "learning_rate")
_REMEDY = "run the training stage"


def write_history(path: Path, history: History) -> None:
    """Write a row for each epoch; the header alone where nothing was trained."""
    _write_rows(path, history, tuple(history[0]) if history else _NO_EPOCH)


def read_history(path: Path) -> pd.DataFrame:
    """Read ``epoch``, ``train_loss`` and the other recorded numbers; NaN where an epoch lacks one.

    There is no row if nothing was trained.
    """
    with reading(path, "a history of training", _REMEDY):
        table = pd.read_csv(path)
        if not {"epoch", "train_loss"} <= set(table.columns):
            raise ValueError("it needs epoch and train_loss")
        return table


def write_sweep(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a row for each learning rate, for people; the header alone where nothing was trained."""
    _write_rows(path, rows, _SWEEP_COLUMNS)


def _write_rows(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


@dataclass(frozen=True, eq=False)
class GpuUse:
    """The device of a training, and its samples, a column for each of ``GPU_COLUMNS``."""

    device: str
    samples: pd.DataFrame


def gpu_csv(device: str, rows: Sequence[str] = ()) -> str:
    """Return the text of the file: a comment that names the device, the header, and the rows of numbers."""
    return "\n".join([f"# {device}", ",".join(GPU_COLUMNS), *rows]) + "\n"


def gpu_row(values: Sequence[float | None]) -> str:
    """Return a row of :func:`gpu_csv`; None where the GPU does not tell a number."""
    return ",".join("" if value is None else f"{value:.3f}" for value in values)


def whole_rows(path: Path) -> tuple[str | None, list[str]]:
    """Return the device and the whole rows of a file whose last row may be incomplete."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        return None, []
    if len(lines) < 2 or not lines[0].startswith("# "):
        return None, []
    whole = [line.rstrip("\n") for line in lines[2:] if line.endswith("\n")]
    return lines[0][2:].rstrip("\n"), [row for row in whole if row.count(",") == len(GPU_COLUMNS) - 1]


def read_gpu_use(path: Path) -> GpuUse:
    with reading(path, "a table of GPU use", _REMEDY):
        first, _, _ = path.read_text(encoding="utf-8").partition("\n")
        samples = pd.read_csv(path, comment="#", dtype=float)
        if not first.startswith("# ") or tuple(samples.columns) != GPU_COLUMNS:
            raise ValueError(f"its columns are not {', '.join(GPU_COLUMNS)}")
        return GpuUse(first.removeprefix("# "), samples)
