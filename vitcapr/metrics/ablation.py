"""Retrieval by models that each lack one part of another: the differences, with paired intervals."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from vitcapr.errors import UserError
from vitcapr.metrics.bootstrap import compare
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


def _file(files: Mapping[tuple[str, str], Path], model: str, split: str) -> Path:
    if (model, split) not in files:
        raise UserError(f"there are no ranks of '{model}' on the split '{split}'", remedy="give its ranks.npz")
    return files[model, split]
