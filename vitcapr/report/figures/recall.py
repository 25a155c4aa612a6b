"""Recall@K of retrievers side by side, with confidence intervals and chance level."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch

from vitcapr.report.figures.style import INK, LEGEND_ROW, PAGE_WIDTH, SMALL_TEXT_SIZE, new_figure, series, styled
from vitcapr.report.figures.text_width import legend_columns

DEPTHS = (1, 5, 10)
DIRECTIONS = {"i2t": "image to text", "t2i": "text to image"}
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "----")
_DOTS = (0, (1, 1))
_ABREAST = 7
"""Maximum number of retrievers whose values fit side by side in half a page width."""
_GROUP = 0.84
"""Width of the bars of all retrievers at one K, of the distance between two Ks."""

ScoresByName = Mapping[str, Mapping[str, float | None]]
"""By the metric's name: ``value``, ``low``, ``high``."""


def by_system(trainings: Mapping[str, Sequence[ScoresByName]]) -> dict[str, ScoresByName]:
    """The scores of each system from those of all its trainings.

    A single training keeps its name and its intervals. Several become their means, with a standard deviation over them
    each way, and a name that says how many seeds there were.
    """
    return {
        name if len(several) == 1 else f"{name}, {len(several)} seeds": _seed_average(several)
        for name, several in trainings.items()
    }


def _seed_average(several: Sequence[ScoresByName]) -> ScoresByName:
    if len(several) == 1:
        return several[0]
    means: dict[str, dict[str, float | None]] = {}
    for metric in sorted(set.intersection(*(set(scores) for scores in several))):
        values = [value for scores in several if (value := scores[metric]["value"]) is not None]
        if len(values) == len(several):
            mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
            means[metric] = {"value": mean, "low": mean - spread, "high": mean + spread}
    return means


@styled
def recall_bars(retrievers: Mapping[str, ScoresByName], searched: Mapping[str, str]) -> Figure:
    """Recall@1, 5 and 10 in percent: one panel per direction, one bar per retriever with its interval and value.

    Of more than seven retrievers the panels stand one above the other. A dotted line across each group of bars is what
    a random order gives, where the metrics tell it.

    Args:
        searched: by direction, ``i2t`` and ``t2i``, what was asked and what was searched.
    """
    if not any(f"{d}_recall_{k}" in scores for scores in retrievers.values() for d in DIRECTIONS for k in DEPTHS):
        raise ValueError("no retriever has a recall")
    labels = [*retrievers, "by chance"]
    columns = legend_columns(labels)
    rows = 1 if len(retrievers) <= _ABREAST else 2
    height = 2.5 * rows + LEGEND_ROW * -(-len(labels) // columns)
    figure = new_figure(PAGE_WIDTH, height, layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.04))
    panels = figure.subplots(rows, 2 // rows, sharey=True)
    by_chance = []
    for axes, (direction, title) in zip(panels, DIRECTIONS.items(), strict=True):
        for number, scores in enumerate(retrievers.values()):
            _draw_bars(axes, direction, scores, number, len(retrievers))
        by_chance += _draw_chance(axes, direction, retrievers.values())
        axes.set_title(f"{title}: {searched[direction]}", loc="left")
        axes.set_xticks(range(len(DEPTHS)), [f"R@{k}" for k in DEPTHS])
        axes.tick_params(axis="x", length=0)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
    for axes in panels[:rows]:
        axes.set_ylabel("recall (%)")
    handles: list[Artist] = [
        Patch(facecolor=series(number)["color"], edgecolor="white", hatch=_hatch(number), label=name)
        for number, name in enumerate(retrievers)
    ]
    handles += by_chance[:1]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)
    return figure


def _draw_bars(axes: Axes, direction: str, scores: ScoresByName, number: int, count: int) -> None:
    width = _GROUP / count
    for group, depth in enumerate(DEPTHS):
        value = _percent(scores, f"{direction}_recall_{depth}", "value")
        if not np.isfinite(value):
            continue
        low, high = (_percent(scores, f"{direction}_recall_{depth}", bound) for bound in ("low", "high"))
        place = group - _GROUP / 2 + (number + 0.5) * width
        color, hatch = series(number)["color"], _hatch(number)
        axes.bar(place, value, 0.92 * width, color=color, edgecolor="white", linewidth=0, hatch=hatch)
        top = value
        if np.isfinite(low) and np.isfinite(high):
            axes.vlines(place, low, high, color=INK, linewidth=0.9)
            top = high
        axes.annotate(
            f"{value:.1f}",
            (place, top),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL_TEXT_SIZE,
            rotation=90 if count > 2 else 0,
        )
    axes.margins(y=0.16 if count > 2 else 0.1)


def _hatch(number: int) -> str:
    """Another one beside a colour that comes again."""
    return _HATCHES[(number + number // len(_HATCHES)) % len(_HATCHES)]


def _draw_chance(axes: Axes, direction: str, retrievers: Iterable[ScoresByName]) -> list[LineCollection]:
    """A line over each group; all retrievers of a split search the same pool."""
    lines = []
    for group, depth in enumerate(DEPTHS):
        levels = [_percent(scores, f"{direction}_recall_{depth}_chance", "value") for scores in retrievers]
        if known := [level for level in levels if np.isfinite(level)]:
            ends = group - 0.5, group + 0.5
            lines.append(axes.hlines(known[0], *ends, color=INK, linewidth=1.2, linestyle=_DOTS, label="by chance"))
    return lines


def _percent(scores: ScoresByName, metric: str, part: str) -> float:
    value = scores.get(metric, {}).get(part)
    return float("nan") if value is None else 100 * value
