"""Retrieval by models that each lack one part of another: the differences, with paired intervals."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from vitcapr.errors import UserError
from vitcapr.formats.tables import Table, row
from vitcapr.metrics.bootstrap import compare
from vitcapr.metrics.labels import COLUMNS
from vitcapr.metrics.report import interval_protocol
from vitcapr.metrics.retrieval_files import measures_of_both

_COLUMNS = ["split", "whole", "model", "metric", "of_whole", "of_model", "difference", "low", "high", "p_value"]
METRICS = ("i2t_recall_1", "i2t_recall_10", "t2i_recall_1", "t2i_recall_10", "rsum")


def ablation_numbers(
    files: Mapping[tuple[str, str], Path], pairs: Sequence[tuple[str, str]], samples: int, seed: int
) -> pd.DataFrame:
    """``split, whole, model, metric, of_whole, of_model, difference, low, high, p_value``, a row a difference.

    Args:
        files: ``ranks.npz`` by model and split.
        pairs: the whole model and the one that lacks something; the difference is of the latter less the former.

    Raises:
        UserError: a file is missing, or two models were scored on different images or captions.
    """
    rows = []
    for split in dict.fromkeys(split for _, split in files):
        for whole, model in pairs:
            of_whole, of_model = measures_of_both(*(_file(files, name, split) for name in (whole, model)))
            for metric in METRICS:
                found = compare(of_model[metric], of_whole[metric], samples, seed)
                rows.append((split, whole, model, metric, of_whole[metric].value, of_model[metric].value, *found))
    return pd.DataFrame(rows, columns=_COLUMNS)


def ablation_tables(numbers: pd.DataFrame, samples: int, seed: int) -> list[Table]:
    """A table for each split and whole model: its scores, and under them what each other model's are apart."""
    tables = []
    for (split, whole), part in numbers.groupby(["split", "whole"], sort=False):
        scores = part.drop_duplicates("metric").set_index("metric")["of_whole"]
        lines = [row(str(whole), *(COLUMNS[metric].exact(scores[metric]) for metric in METRICS))]
        for model, own in part.groupby("model", sort=False):
            found = own.set_index("metric")
            cells = (
                COLUMNS[metric].difference(*found.loc[metric, ["difference", "low", "high"]].astype(float))
                for metric in METRICS
            )
            lines.append(row(str(model), *cells))
        tables.append(
            Table(
                f"{whole}, {split} split",
                ("model", *(COLUMNS[metric].label for metric in METRICS)),
                tuple(lines),
                align=f"l{'r' * len(METRICS)}",
                caption=f"Scores times 100 of {whole}; under them differences of the other models from it, on the same "
                "images and captions. In parentheses 95 % intervals, by resampling images in pairs "
                f"({'|'.join(interval_protocol(samples, seed))}). One training each: the spread over seeds is not in "
                "the intervals. One score a column: not corrected for their number.",
            )
        )
    return tables


def _file(files: Mapping[tuple[str, str], Path], model: str, split: str) -> Path:
    if (model, split) not in files:
        raise UserError(f"there are no ranks of '{model}' on the split '{split}'", remedy="give its ranks.npz")
    return files[model, split]
