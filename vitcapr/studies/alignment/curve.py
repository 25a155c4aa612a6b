"""The figure of a study of alignments."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from vitcapr.report.direction import TITLES
from vitcapr.report.figures.learning_curve import learning_curve
from vitcapr.report.figures.style import BLUE, PAGE_WIDTH, new_figure, styled

_ROW = 0.19
"""Inches that a system takes."""


def alignment_curve(scores: pd.DataFrame) -> Figure:
    """The learning curve of a study of alignments from its scores.csv; with one number of pairs, a row a system."""
    recalls = scores.rename(columns={f"{direction}_recall_1": direction for direction in TITLES})
    systems = {str(system): runs for system, runs in recalls.groupby("system", sort=False)}
    images, captions = (f"{int(scores[name].iloc[0]):,} {name}" for name in ("images", "captions"))
    pools = {"i2t": f"{images} among {captions}", "t2i": f"{captions} among {images}"}
    if scores["pairs"].nunique() == 1:
        return _rows(scores, pools)
    return learning_curve(systems, pools)


@styled
def _rows(scores: pd.DataFrame, pools: Mapping[str, str]) -> Figure:
    """Recall@1 in percent of every system: fits, and their mean over the seeds with a standard deviation each way."""
    names = list(dict.fromkeys(scores["system"]))
    figure = new_figure(PAGE_WIDTH, 0.9 + _ROW * len(names))
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, (direction, title) in zip(panels, TITLES.items(), strict=True):
        recall = 100 * scores[f"{direction}_recall_1"].groupby(scores["system"], sort=False).agg(["mean", "std"])
        places = range(len(names))
        axes.errorbar(recall["mean"], places, xerr=recall["std"].fillna(0.0), fmt="o", color=BLUE, linewidth=1)
        each = scores["system"].map(names.index)
        axes.scatter(100 * scores[f"{direction}_recall_1"], each, s=3, color=BLUE, linewidths=0, zorder=3)
        axes.set_title(f"{title}:\n{pools[direction]}", loc="left")
        axes.set_yticks(places, names)
        axes.set_xlabel(f"R@1 (%), {int(scores['pairs'].iloc[0]):,} training pairs")
        axes.set_xlim(left=0)
        axes.grid(axis="x")
    panels[0].invert_yaxis()
    return figure
