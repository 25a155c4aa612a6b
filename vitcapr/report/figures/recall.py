"""Recalls of retrievers: of each system over its trainings, and over the number of training pairs."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from vitcapr.report.direction import TITLES
from vitcapr.report.figures.style import LEGEND_ROW, PAGE_WIDTH, legend_columns, new_figure, series, styled

DEPTHS = (1, 5, 10)
PARTS = ("value", "low", "high")
ScoresByName = Mapping[str, Mapping[str, float | None]]
"""By the metric's name: ``value``, ``low``, ``high``."""
_LEVEL, _ROTATION = 5, 45
"""More sizes than this have their labels at a slant."""


def by_system(trainings: Mapping[str, Sequence[ScoresByName]]) -> dict[str, ScoresByName]:
    """Return the scores of each system from those of all its trainings.

    A single training keeps its name and its intervals. Several become their means, with a standard deviation over them
    each way, and a name that says how many seeds there were.
    """
    systems = {}
    for name, several in trainings.items():
        if len(several) == 1:
            systems[name] = several[0]
            continue
        means: dict[str, dict[str, float | None]] = {}
        for metric in sorted(set.intersection(*map(set, several))):
            values = [value for scores in several if (value := scores[metric]["value"]) is not None]
            if len(values) == len(several):
                mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
                means[metric] = {"value": mean, "low": mean - spread, "high": mean + spread}
        systems[f"{name}, {len(several)} seeds"] = means
    return systems


def percent(scores: ScoresByName, metric: str, part: str) -> float:
    """Return a part of a score, ``value``, ``low`` or ``high``, in percent; NaN for a missing one."""
    value = scores.get(metric, {}).get(part)
    return float("nan") if value is None else 100 * value


@styled
def learning_curve(systems: Mapping[str, pd.DataFrame], pools: Mapping[str, str]) -> Figure:
    """Draw recall@1 in percent over the training pairs.

    There is one panel per direction, and one line per system through the seed averages.

    The band is a standard deviation over the seeds each way; every training is a dot.

    Args:
        systems: a row a training: ``pairs``, and Recall@1 as a fraction in ``i2t`` and ``t2i``.
        pools: by direction, ``i2t`` and ``t2i``, what was asked and what was searched.
    """
    seeds = {name: int(trainings["pairs"].value_counts().max()) for name, trainings in systems.items()}
    several = max(seeds.values()) > 1
    labels = [f"{name}: mean of {number} seeds" if several else name for name, number in seeds.items()]
    columns = legend_columns(labels)
    height = 2.6 + LEGEND_ROW * -(-len(labels) // columns)
    figure = new_figure(PAGE_WIDTH, height)
    panels = figure.subplots(1, 2, sharey=True)
    sizes = sorted({int(size) for trainings in systems.values() for size in trainings["pairs"]})
    for axes, direction in zip(panels, TITLES, strict=True):
        for number, trainings in enumerate(systems.values()):
            _draw(axes, trainings, direction, number)
        axes.set_title(f"{TITLES[direction]}: {pools[direction]}", loc="left")
        axes.set_xscale("log")
        axes.set_xticks(_labelled(sizes))
        axes.set_xticks(sizes, minor=True)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="x", rotation=_ROTATION if len(sizes) > _LEVEL else 0)
        axes.set_xlabel("training pairs")
        axes.set_ylim(bottom=0)
        axes.grid()
    panels[0].set_ylabel("R@1 (%)")
    lines = [line for line in panels[0].lines if not str(line.get_label()).startswith("_")]
    figure.legend(handles=lines, labels=labels, loc="outside lower center", ncols=columns)
    return figure


def _labelled(sizes: Sequence[int]) -> list[int]:
    """Return the sizes whose labels do not touch, from the largest down; the others have a tick alone."""
    room = (0.07 if len(sizes) > _LEVEL else 0.16) * np.log(sizes[-1] / sizes[0])
    kept = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if np.log(kept[-1] / size) >= room:
            kept.append(size)
    return kept


def _draw(axes: Axes, trainings: pd.DataFrame, direction: str, number: int) -> None:
    style, recall = series(number), 100 * trainings[direction]
    by_size = recall.groupby(trainings["pairs"])
    mean, spread = by_size.mean(), by_size.std().fillna(0.0)
    axes.plot(mean.index, mean, label=f"system {number}", **style)
    axes.fill_between(mean.index, mean - spread, mean + spread, color=style["color"], alpha=0.2, linewidth=0)
    axes.scatter(trainings["pairs"], recall, s=3, color=style["color"], linewidths=0, zorder=3)
