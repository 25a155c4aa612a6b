"""An atlas: which layer, which tokens, which encoder? What alignments measured for each input, side by side."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from vitcapr.formats.records import reading
from vitcapr.formats.scores import read_metrics
from vitcapr.formats.tables import NOTHING, Cell, Table, number, row, to_page
from vitcapr.metrics.labels import COLUMNS

RECALLS = ("i2t_recall_1", "t2i_recall_1")
CIDER = "cider"
KEYS = ["image", "inputs"]
_SAMPLES = 2000
"""Bootstrap samples of a rank correlation."""
_FEWEST = 5
"""Inputs for a rank correlation."""


def read_atlas(
    intervals: Mapping[str, Path], similarity: Mapping[str, Path], seconds: Mapping[str, Path]
) -> pd.DataFrame:
    """Return the files of alignments, by ``image encoder/text encoder``, as one table: a row for each input and family.

    Columns: ``image, inputs, text, family, pairs, calibrated, cpu_seconds``, and for each of the recalls its value and
    its bounds, such as ``i2t_recall_1, i2t_recall_1_low, i2t_recall_1_high``. Of several numbers of pairs, the largest.
    """
    parts = []
    for encoders, path in intervals.items():
        image, text = encoders.split("/")
        with reading(path.parent, "the tables of an alignment", "run the align stage"):
            recalls = pd.read_csv(path)
            recalls = recalls[recalls["pairs"] == recalls["pairs"].max()]
            wide = recalls.pivot_table(index=["inputs", "family", "pairs"], columns="score", sort=False)
            wide.columns = [score if kind == "value" else f"{score}_{kind}" for kind, score in wide.columns]
            spent = pd.read_csv(seconds[encoders]).groupby(["inputs", "family", "pairs"])["cpu_seconds"].mean()
            before = pd.read_csv(similarity[encoders])[["inputs", "calibrated"]]
            part = wide.join(spent).reset_index().merge(before, on="inputs")
            parts.append(part.assign(image=image, text=text))
    bounds = [f"{score}{end}" for score in RECALLS for end in ("", "_low", "_high")]
    columns = [*KEYS, "text", "family", "pairs", "calibrated", *bounds, "cpu_seconds"]
    atlas: pd.DataFrame = pd.concat(parts, ignore_index=True)[columns]
    return atlas


def read_captioners(metrics: Mapping[str, Path]) -> pd.DataFrame:
    """Scores of captioners by ``image encoder/input``: ``image, inputs, cider, low, high``."""
    scores = {name: read_metrics(path)["metrics"][CIDER] for name, path in metrics.items()}
    rows = [(*name.split("/"), one["value"], one["low"], one["high"]) for name, one in scores.items()]
    return pd.DataFrame(rows, columns=[*KEYS, CIDER, "low", "high"])


def rank_correlation(x: ArrayLike, y: ArrayLike) -> Cell:
    """Spearman's coefficient, the correlation of the ranks, with its 95 % bootstrap interval over the inputs."""
    a, b = np.asarray(x), np.asarray(y)
    if len(a) < _FEWEST:
        return Cell(NOTHING)
    draws = np.random.default_rng(0).integers(0, len(a), (_SAMPLES, len(a)))
    low, high = np.nanpercentile(_spearman(a[draws], b[draws]), (2.5, 97.5))
    return number(float(_spearman(a[None], b[None])[0]), float(low), float(high), places=2)


def _spearman(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation of each row of (K, n): (K,); nan where all values are equal."""
    ranks = [rankdata(values, axis=1) for values in (x, y)]
    a, b = (values - values.mean(axis=1, keepdims=True) for values in ranks)
    with np.errstate(invalid="ignore"):
        correlation: np.ndarray = (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))
    return correlation


def correlation_table(atlas: pd.DataFrame) -> Table:
    """Correlate the calibrated similarity of the inputs with their recall.

    There is a row for each text encoder and family.
    """
    rows = [
        row(str(text), str(family), str(len(part)), *(rank_correlation(part["calibrated"], part[s]) for s in RECALLS))
        for (text, family), part in atlas.groupby(["text", "family"], sort=False)
    ]
    columns = ("text encoder", "family", "inputs", *(COLUMNS[score].label for score in RECALLS))
    return Table("Rank correlation of calibrated mutual kNN with Recall@1", columns, tuple(rows), align="llrrr")


def atlas_page(atlas: pd.DataFrame, captioners: pd.DataFrame) -> str:
    """Return the tables of an atlas in Markdown."""
    rows = [
        row(
            *(str(one[key]) for key in (*KEYS, "text", "family")),
            number(one["calibrated"], places=3),
            *(COLUMNS[s].cell({"value": one[s], "low": one[f"{s}_low"], "high": one[f"{s}_high"]}) for s in RECALLS),
            f"{one['cpu_seconds']:.1f}",
        )
        for one in atlas.to_dict("records")
    ]
    labels = [COLUMNS[score].label for score in RECALLS]
    columns = ("image encoder", "inputs", "text encoder", "family", "calibrated mutual kNN", *labels, "CPU s")
    tables = [Table("Every input", columns, tuple(rows), align="llllrrrr"), correlation_table(atlas)]
    if len(captioners):
        read = [
            row(str(one["image"]), str(one["inputs"]), COLUMNS[CIDER].cell({**one, "value": one[CIDER]}))
            for one in captioners.to_dict("records")
        ]
        tables.append(Table("Captioners", ("image encoder", "inputs", "CIDEr"), tuple(read), align="llr"))
    protocol = (
        "Recall@1 in percent on the test images: the mean over the seeds, and its 95 % interval over the images. "
        "Settings are chosen on the validation images. CPU seconds are those of one fit with the "
        "choice of its settings. The interval of a rank correlation resamples the inputs. Inputs of one network are "
        "not independent, so it is too narrow."
    )
    return to_page(tables, "Atlas of the inputs", protocol)
