"""All scores of an experiment in one tidy table: one row per score."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout

from vitcapr.errors import UserError
from vitcapr.formats.scores import COLUMNS, read_summary, typed, write_summary

_LOCK_SECONDS = 60


def tidy(reports: Sequence[Mapping[str, Any]], experiment: str) -> pd.DataFrame:
    """One row for each score of each metrics file, in the order of the files and, within one, of the names."""
    rows = [
        {
            "experiment": experiment,
            **{key: report[key] for key in ("dataset", "split", "model", "decoding", "protocol")},
            "metric": metric,
            **score,
        }
        for report in reports
        for metric, score in sorted(report["metrics"].items())
    ]
    table = typed(pd.DataFrame(rows, columns=list(COLUMNS)))
    keys = ["dataset", "split", "model", "decoding", "metric"]
    if table.duplicated(keys).any():
        twice = table[table.duplicated(keys)].iloc[0]
        raise UserError(
            f"{twice['metric']} of model '{twice['model']}', decoding '{twice['decoding']}' is given twice",
            remedy="name each metrics file once",
        )
    return table


def collect(path: Path, table: pd.DataFrame, experiment: str) -> None:
    """Put an experiment's rows in place of those it had in the table that all experiments share.

    Experiments that end together wait for one another.

    Raises:
        UserError: another process held the table for a minute.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    try:
        with FileLock(lock, timeout=_LOCK_SECONDS):
            others = []
            if path.exists():
                present = read_summary(path)
                others = [present[present["experiment"] != experiment]]
            together = pd.concat([*others, table], ignore_index=True)
            write_summary(path, together.sort_values("experiment", kind="stable", ignore_index=True))
    except Timeout as error:
        raise UserError("another process holds the summary", where=lock, remedy="run the same command again") from error
