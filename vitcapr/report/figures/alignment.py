"""Recall of alignments over the number of training pairs."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from vitcapr.report.figures.learning_curve import TrainedRetriever, learning_curve
from vitcapr.report.figures.style import BLUE, PAGE_WIDTH, new_figure, styled

_DIRECTIONS = {"i2t": "image to text", "t2i": "text to image"}
_ROW = 0.19
"""Inches that a system takes."""


def alignment_curve(scores: pd.DataFrame) -> Figure:
    """Recall@1 of every system of a study, as :func:`vitcapr.report.figures.learning_curve.learning_curve` draws it.

    A study with one number of pairs has a row for each system instead.

    Args:
        scores: scores.csv of the study.
    """
    columns = ["pairs", "i2t_recall_1", "t2i_recall_1"]
    systems = {
        str(system): [TrainedRetriever(*row) for row in runs[columns].itertuples(index=False, name=None)]
        for system, runs in scores.groupby("system", sort=False)
    }
    images, captions = (f"{int(scores[name].iloc[0]):,} {name}" for name in ("images", "captions"))
    searched = {"i2t": f"{images} among {captions}", "t2i": f"{captions} among {images}"}
    if scores["pairs"].nunique() == 1:
        return _rows(scores, searched)
    return learning_curve(systems, searched)


@styled
def _rows(scores: pd.DataFrame, searched: Mapping[str, str]) -> Figure:
    """Recall@1 in percent of every system: fits, and their mean over the seeds with a standard deviation each way."""
    names = list(dict.fromkeys(scores["system"]))
    figure = new_figure(PAGE_WIDTH, 0.9 + _ROW * len(names), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.04))
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, (direction, title) in zip(panels, _DIRECTIONS.items(), strict=True):
        recall = 100 * scores[f"{direction}_recall_1"].groupby(scores["system"], sort=False).agg(["mean", "std"])
        places = range(len(names))
        axes.errorbar(recall["mean"], places, xerr=recall["std"].fillna(0.0), fmt="o", color=BLUE, linewidth=1)
        each = scores["system"].map(names.index)
        axes.scatter(100 * scores[f"{direction}_recall_1"], each, s=3, color=BLUE, linewidths=0, zorder=3)
        axes.set_title(f"{title}:\n{searched[direction]}", loc="left")
        axes.set_yticks(places, names)
        axes.set_xlabel(f"R@1 (%), {int(scores['pairs'].iloc[0]):,} training pairs")
        axes.set_xlim(left=0)
        axes.grid(axis="x")
    panels[0].invert_yaxis()
    return figure
