"""Scores over seeds: how far they lie apart, and whether one model beats another beyond that."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student

from vitcapr.metrics.table import (
    COUNTS,
    HEADLINE,
    IMAGE_TO_TEXT,
    NOT_SHOWN,
    RANKS,
    TEXT_TO_IMAGE,
    markdown_row,
    verdict,
)

COLUMNS = ("dataset", "split", "model", "decoding", "metric", "n", "mean", "sd", "min", "max")
PAIR_COLUMNS = (
    *("dataset", "split", "decoding", "metric", "first", "second", "n", "difference", "low", "high"),
    *("wins", "verdict"),
)

_SHOWN = HEADLINE | {name: f"{label}, image to text" for name, label in IMAGE_TO_TEXT.items()}
_SHOWN |= {name: label if name == "rsum" else f"{label}, text to image" for name, label in TEXT_TO_IMAGE.items()}
_COMPARED = ("i2t_recall_1", "t2i_recall_1", "rsum", "bleu_4", "meteor", "cider")
_LEVEL = 0.95
_PLACE = ["dataset", "split", "decoding"]


class Seeded(NamedTuple):
    """A scored model that differs from others in its seed.

    Attributes:
        of: the definition it was made from.
        vary: what else was varied in it, as its name says; only models of equal ``vary`` are compared.
    """

    of: str
    vary: str
    seed: int

    @property
    def group(self) -> str:
        return f"{self.of}-{self.vary}" if self.vary else self.of


def spread(summary: pd.DataFrame, models: Mapping[str, Seeded]) -> pd.DataFrame:
    """A row for each score of each group of at least two seeds; ``sd`` is the sample's, with n - 1.

    Args:
        summary: see :mod:`vitcapr.metrics.summary`.
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
    """Every two groups that were varied alike, seed against seed: the mean of second - first and its 95 % interval.

    The interval is Student's, over the differences of the seeds that both have, at least two. ``verdict`` says of the
    second ``higher`` or ``lower`` where the interval leaves out 0, and otherwise ``no difference shown``; ``wins``
    counts the seeds in which the second has the larger score. The test images are the same for all: the interval is
    about other seeds, not about other images, and each is of one score, not corrected for their number.
    """
    of_group = {model.group: model for model in models.values()}
    scores: dict[tuple[str, ...], dict[str, pd.Series[float]]] = {}
    for (dataset, split, decoding, metric, group), part in _grouped(summary, models):
        if metric in _COMPARED:
            scores.setdefault((dataset, split, decoding, metric), {})[group] = part.set_index("seed")["value"]
    rows = []
    for place, groups in scores.items():
        for first, second in combinations(groups, 2):
            if of_group[first].vary != of_group[second].vary:
                continue
            differences = (groups[second] - groups[first]).dropna().to_numpy()
            if len(differences) > 1:
                rows.append((*place, first, second, len(differences), *_interval(differences)))
    return pd.DataFrame(rows, columns=list(PAIR_COLUMNS))


def _grouped(
    summary: pd.DataFrame, models: Mapping[str, Seeded]
) -> Iterator[tuple[tuple[str, str, str, str, str], pd.DataFrame]]:
    """The scores of each group, by data set, split, decoding, metric and group, in the order of the summary."""
    table = summary[summary["model"].isin(list(models)) & summary["value"].notna()].copy()
    table["group"] = [models[name].group for name in table["model"]]
    table["seed"] = [models[name].seed for name in table["model"]]
    for key, part in table.groupby([*_PLACE, "metric", "group"], sort=False):
        dataset, split, decoding, metric, group = map(str, key)
        yield (dataset, split, decoding, metric, group), part


def _interval(differences: np.ndarray) -> tuple[float, float, float, int, str]:
    n, mean = len(differences), float(differences.mean())
    half = float(student.ppf((1 + _LEVEL) / 2, n - 1) * differences.std(ddof=1) / np.sqrt(n))
    low, high = mean - half, mean + half
    return mean, low, high, int((differences > 0).sum()), verdict(low, high)


def markdown(spread_table: pd.DataFrame, paired_table: pd.DataFrame) -> str:
    """Both tables as people read them."""
    lines = ["# Over seeds", ""]
    for (dataset, split), part in spread_table.groupby(["dataset", "split"], sort=False):
        names = [name for name in _SHOWN if name in set(part["metric"])]
        lines += [f"**{dataset}, {split} split: mean ± standard deviation (least to greatest) over seeds**", ""]
        lines += [_head(["score", *_models(part)], 1)]
        for name in names:
            of_metric = part[part["metric"] == name].to_dict("records")
            rows = {(row["model"], row["decoding"]): row for row in of_metric}
            cells = [_cell(rows.get(key), name) for key in _keys(part)]
            lines.append(markdown_row([_SHOWN[name], *cells]))
        seeds = part.groupby(["model", "decoding"], sort=False)["n"].max()
        lines += [markdown_row(["seeds", *(str(count) for count in seeds)]), ""]
    if not paired_table.empty:
        lines += ["**One against the other, seed by seed**", ""]
        lines += [_head(["score", "first", "second", "second - first", "95 % interval", "seeds won", "finding"], 3)]
        for row in paired_table.to_dict("records"):
            way = f", {row['decoding']}" if row["decoding"] else ""
            scale, places = _scale(row["metric"])
            low, high = (f"{scale * row[side]:+.{places}f}" for side in ("low", "high"))
            cells = [_SHOWN[row["metric"]] + way, row["first"], row["second"]]
            cells += [f"{scale * row['difference']:+.{places}f}", f"{low} to {high}"]
            lines.append(markdown_row([*cells, f"{row['wins']} of {row['n']}", _finding(row)]))
        lines += [
            "",
            "The interval is Student's, over the differences of equal seeds on the same test images. One score a row: "
            "not corrected for their number.",
        ]
    return "\n".join(lines) + "\n"


def _finding(row: Mapping[Hashable, Any]) -> str:
    if row["verdict"] == NOT_SHOWN:
        return NOT_SHOWN
    return f"{row['second']} {row['verdict']} beyond the spread of the seeds"


def _head(names: Sequence[str], left: int) -> str:
    return "\n".join([markdown_row(names), markdown_row(["---"] * left + ["---:"] * (len(names) - left))])


def _keys(part: pd.DataFrame) -> list[tuple[str, str]]:
    return list(part[["model", "decoding"]].drop_duplicates().itertuples(index=False, name=None))


def _models(part: pd.DataFrame) -> list[str]:
    return [", ".join(filter(None, key)) for key in _keys(part)]


def _cell(row: Mapping[Hashable, Any] | None, name: str) -> str:
    if row is None:
        return "-"
    scale, places = _scale(name)
    mean, sd, least, greatest = (f"{scale * row[column]:.{places}f}" for column in ("mean", "sd", "min", "max"))
    return f"{mean} ± {sd} ({least}-{greatest})"


def _scale(name: str) -> tuple[int, int]:
    """What a score is multiplied by to be read, and the places after its point."""
    return (1, 1) if name in RANKS or name in COUNTS else (100, 2)
