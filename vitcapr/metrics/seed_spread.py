"""The spread of scores over seeds, and tests of differences between models."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Protocol

import numpy as np
import pandas as pd
from scipy.stats import t as student

from vitcapr.metrics.bootstrap import LEVEL, verdict

COLUMNS = ("dataset", "split", "model", "decoding", "metric", "n", "mean", "sd", "min", "max")
PAIR_COLUMNS = (
    *("dataset", "split", "decoding", "metric", "first", "second", "n", "difference", "low", "high"),
    *("wins", "verdict"),
)

_COMPARED = ("i2t_recall_1", "t2i_recall_1", "rsum", "bleu_4", "meteor", "cider")
_PLACE = ["dataset", "split", "decoding"]


class Seeded(Protocol):
    """A scored model that differs from others of its system in its seed.

    See :class:`vitcapr.config.experiment.SeededModel`.

    Only models of equal ``vary`` are compared.
    """

    @property
    def system(self) -> str: ...
    @property
    def vary(self) -> str: ...
    @property
    def seed(self) -> int: ...


def spread(summary: pd.DataFrame, models: Mapping[str, Seeded]) -> pd.DataFrame:
    """Return a row for each score of each group of at least two seeds; ``sd`` is the sample's, with n - 1.

    Args:
        summary: see :func:`vitcapr.formats.scores.tidy`.
        models: those that have a seed of their own, by the name they are scored under.
    """
    rows = []
    for (dataset, split, decoding, metric, group), part in _grouped(summary, models):
        values = part["value"].to_numpy()
        if len(values) > 1:
            about = [len(values), values.mean(), values.std(ddof=1), values.min(), values.max()]
            rows.append((dataset, split, group, decoding, metric, *about))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def paired(summary: pd.DataFrame, models: Mapping[str, Seeded]) -> pd.DataFrame:
    """Compare, seed against seed, groups that were varied alike and decodings of a group.

    Returns the mean of second - first and its 95 % interval.

    The interval is Student's, over the differences of the seeds that both have, at least two. ``verdict`` says of the
    second ``higher`` or ``lower`` where the interval leaves out 0, and otherwise ``no difference shown``; ``wins``
    counts the seeds in which the second has the larger score. The test images are the same for all: the interval is
    about other seeds, not about other images, and each is of one score, not corrected for their number.
    """
    of_group = {model.system: model for model in models.values()}
    scores: dict[tuple[str, ...], dict[str, pd.Series[float]]] = {}
    for (dataset, split, decoding, metric, group), part in _grouped(summary, models):
        if metric in _COMPARED:
            values = part.set_index("seed")["value"]
            scores.setdefault((dataset, split, decoding, metric, of_group[group].vary), {})[group] = values
            if decoding:
                scores.setdefault((dataset, split, "", metric, group), {})[f"{group}, {decoding}"] = values
    rows = []
    for (*place, _), groups in scores.items():
        for first, second in combinations(groups, 2):
            differences = (groups[second] - groups[first]).dropna().to_numpy()
            if (n := len(differences)) > 1:
                mean = float(differences.mean())
                half = float(student.ppf((1 + LEVEL) / 2, n - 1) * differences.std(ddof=1) / np.sqrt(n))
                low, high, wins = mean - half, mean + half, int((differences > 0).sum())
                rows.append((*place, first, second, n, mean, low, high, wins, verdict(low, high)))
    return pd.DataFrame(rows, columns=list(PAIR_COLUMNS))


def _grouped(
    summary: pd.DataFrame, models: Mapping[str, Seeded]
) -> Iterator[tuple[tuple[str, str, str, str, str], pd.DataFrame]]:
    """Yield the scores of each group, by data set, split, decoding, metric and group, in the order of the summary."""
    table = summary[summary["model"].isin(list(models)) & summary["value"].notna()].copy()
    table["group"] = [models[name].system for name in table["model"]]
    table["seed"] = [models[name].seed for name in table["model"]]
    for key, part in table.groupby([*_PLACE, "metric", "group"], sort=False):
        dataset, split, decoding, metric, group = map(str, key)
        yield (dataset, split, decoding, metric, group), part
