"""``gpu.csv``: GPU use and memory during a training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from vitcapr.errors import UserError

COLUMNS = ("seconds", "gpu_percent", "memory_gib", "memory_total_gib")


@dataclass(frozen=True, eq=False)
class GpuUse:
    """The device of a training, and its samples: ``seconds``, ``gpu_percent``, ``memory_gib``, ``memory_total_gib``."""

    device: str
    samples: pd.DataFrame


def gpu_csv(device: str, rows: Sequence[str] = ()) -> str:
    """The text of the file: a comment that names the device, the header, and the rows, each a line of numbers."""
    return "\n".join([f"# {device}", ",".join(COLUMNS), *rows]) + "\n"


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
    return lines[0][2:].rstrip("\n"), [row for row in whole if row.count(",") == len(COLUMNS) - 1]


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
    if not first.startswith("# ") or tuple(samples.columns) != COLUMNS:
        raise UserError(what, where=path, remedy=f"{remedy} again")
    values = samples.to_numpy()
    if np.isinf(values).any() or (values < 0).any() or samples["seconds"].isna().any():
        raise UserError(f"{what}: a number is negative, infinite or missing", where=path, remedy=f"{remedy} again")
    return GpuUse(first.removeprefix("# "), samples)
