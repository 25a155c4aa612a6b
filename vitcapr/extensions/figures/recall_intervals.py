"""Recall@K of retrievers side by side, with confidence intervals and chance level."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitcapr.errors import UserError
from vitcapr.report.direction import TITLES
from vitcapr.report.figures.recall import DEPTHS, PARTS, ScoresByName, percent
from vitcapr.report.figures.style import BLUE, PAGE_WIDTH, SMALL_TEXT_SIZE, TEXT_SIZE, in_print, new_figure, styled

_LINE, _AROUND = 0.24, 0.75
"""Inches of a retriever in a panel, and of title and axis around it."""
_LEAST_SPAN = 2.0
"""Percent that an axis spans at least."""


@styled
def recall_intervals(retrievers: Mapping[str, ScoresByName], searched: Mapping[str, str]) -> Figure:
    """Recall@1, 5 and 10 in percent: a row of panels for each direction, a line in each panel for each retriever.

    Each panel has a scale of its own, so that differences near 100 show. The axis says what a random order gives,
    where the metrics tell it.

    Args:
        searched: by direction, ``i2t`` and ``t2i``, what was asked and what was searched.
    """
    if not any(f"{d}_recall_{k}" in scores for scores in retrievers.values() for d in TITLES for k in DEPTHS):
        raise UserError("no retriever has a recall", remedy="give the metrics of score_retrieval")
    height = len(TITLES) * (_AROUND + _LINE * len(retrievers))
    figure = new_figure(PAGE_WIDTH, height)
    parts: Any = figure.subfigures(len(TITLES))
    for part, (direction, title) in zip(parts, TITLES.items(), strict=True):
        part.suptitle(f"{title}: {searched[direction]}", x=0.01, ha="left", fontsize=TEXT_SIZE)
        for axes, depth in zip(part.subplots(1, len(DEPTHS), sharey=True), DEPTHS, strict=True):
            _draw_panel(axes, retrievers, f"{direction}_recall_{depth}", f"R@{depth} (%)")
    return figure


def _draw_panel(axes: Axes, retrievers: Mapping[str, ScoresByName], metric: str, label: str) -> None:
    points = {name: [percent(scores, metric, part) for part in PARTS] for name, scores in retrievers.items()}
    for line, (value, low, high) in enumerate(points.values()):
        if np.isfinite(value):
            axes.plot(value, line, marker="o", color=BLUE)
            axes.hlines(line, low, high, color=BLUE, linewidth=1.3)
            text: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": SMALL_TEXT_SIZE}
            axes.annotate(f"{value:.1f}", (value, line), xytext=(0, 2), textcoords="offset points", **text)
    known = np.array([number for each in points.values() for number in each if np.isfinite(number)])
    if len(known):
        span = 1.3 * max(float(np.ptp(known)), _LEAST_SPAN)
        right = min((known.min() + known.max() + span) / 2, 100 + span / 5)
        axes.set_xlim(right - span, right)
    axes.set_ylim(len(points) - 0.5, -0.75)  # The first at the top, with room for its number.
    axes.set_yticks(range(len(points)), [in_print(name) for name in points])
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
    axes.grid(axis="x")
    chances = [percent(scores, f"{metric}_chance", "value") for scores in retrievers.values()]
    by_chance = next((f"; by chance {chance:.1f}" for chance in chances if np.isfinite(chance)), "")
    axes.set_xlabel(label + by_chance)
