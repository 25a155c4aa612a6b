"""What ``ranks.npz`` says: of a retriever, of two in one pool, and of models that each lack one part of another."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.scores import RankFile
from vitcapr.metrics.bootstrap import Measure, compare
from vitcapr.metrics.ranks import CaptionOwners
from vitcapr.metrics.retrieval import measures

METRICS = ("i2t_recall_1", "i2t_recall_10", "t2i_recall_1", "t2i_recall_10", "rsum")
_COLUMNS = ["split", "whole", "model", "metric", "of_whole", "of_model", "difference", "low", "high", "p_value"]


def file_measures(file: RankFile) -> dict[str, Measure]:
    return measures(file.ranks, CaptionOwners.of(file.caption_image, len(file.image_row)))


def read_ranks_of(path: Path, pool: Embeddings | RankFile) -> RankFile:
    """The ranks of the images and captions of ``pool``.

    Raises:
        UserError: as :meth:`RankFile.read`, or the ranks are of other images or captions.
    """
    file = RankFile.read(path)
    for name in ("image_row", "caption_row"):
        if not np.array_equal(getattr(file, name), getattr(pool, name)):
            what = "the ranks are of other images or captions"
            raise UserError(what, where=path, remedy="score the same embeddings again")
    return file


def ablation_numbers(
    files: Mapping[tuple[str, str], Path], pairs: Sequence[tuple[str, str]], samples: int, seed: int
) -> pd.DataFrame:
    """``split, whole, model, metric, of_whole, of_model, difference, low, high, p_value``, a row a difference.

    Args:
        files: ``ranks.npz`` by model and split.
        pairs: the whole model and the one that lacks something; the difference is the second minus the first.

    Raises:
        UserError: a file is missing, or two models were scored on different images or captions.
    """
    rows = []
    for split in dict.fromkeys(split for _, split in files):
        for whole, model in pairs:
            for name in (whole, model):
                if (name, split) not in files:
                    what = f"there are no ranks of '{name}' on the split '{split}'"
                    raise UserError(what, remedy="give its ranks.npz")
            complete = RankFile.read(files[whole, split])
            of_whole, of_model = map(file_measures, (complete, read_ranks_of(files[model, split], complete)))
            for metric in METRICS:
                tested = compare(of_model[metric], of_whole[metric], samples, seed)
                rows.append((split, whole, model, metric, of_whole[metric].value, of_model[metric].value, *tested))
    return pd.DataFrame(rows, columns=_COLUMNS)
