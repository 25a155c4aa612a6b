"""The figures of alignments: recall of a study, a heat map of what inputs give, and their similarity against recall."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitcapr.report.direction import TITLES
from vitcapr.report.figures.learning_curve import learning_curve
from vitcapr.report.figures.style import BLUE, PAGE_WIDTH, SMALL_TEXT_SIZE, new_figure, series, styled

_ROW = 0.19
"""Inches that a system takes."""
_INPUT = 0.17
"""Inches that an input takes."""
_SHORT = {"i2t_recall_1": "I→T R@1", "t2i_recall_1": "T→I R@1"}
_SIMILARITY = "calibrated kNN"


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


@styled
def heat_map(atlas: pd.DataFrame, captioners: pd.DataFrame) -> Figure:
    """A row for each input, a panel for each text encoder, and one for the captioners.

    Args:
        atlas: see :func:`vitcapr.studies.alignment.atlas.read_atlas`.
        captioners: ``image, inputs, cider`` as a fraction; may be empty.
    """
    keys = atlas[["image", "inputs"]].drop_duplicates().apply(tuple, axis=1).tolist()
    several = atlas["image"].nunique() > 1
    names = [f"{image}: {inputs}" if several else inputs for image, inputs in keys]
    panels = {}
    for text, part in atlas.groupby("text", sort=False):
        by = part.set_index(["image", "inputs"])
        columns = {_SIMILARITY: by["calibrated"][~by.index.duplicated()]}
        for family, of in by.groupby("family", sort=False):
            columns |= {f"{family}, {label}": 100 * of[score] for score, label in _SHORT.items()}
        panels[str(text)] = pd.DataFrame(columns).reindex(keys)
    if len(captioners):
        cider = 100 * captioners.set_index(["image", "inputs"])["cider"].reindex(keys)
        panels |= {"": pd.DataFrame({"captioner, CIDEr": cider})} if cider.notna().any() else {}
    widths = [part.shape[1] for part in panels.values()]
    figure = new_figure(PAGE_WIDTH, 1.3 + _INPUT * len(keys))
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False, width_ratios=widths)[0]
    for axes, (title, values) in zip(grid, panels.items(), strict=True):
        _draw_values(axes, values)
        axes.set_title(title, loc="left")
    grid[0].set_yticks(range(len(keys)), names)
    return figure


def _draw_values(axes: Axes, values: pd.DataFrame) -> None:
    """Each column on a scale of its own, from its least to its largest value."""
    numbers = values.to_numpy(dtype=float)
    span = np.nanmax(numbers, axis=0) - np.nanmin(numbers, axis=0)
    shade = (numbers - np.nanmin(numbers, axis=0)) / np.where(span > 0, span, 1)
    axes.imshow(shade, cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    for (line, column), value in np.ndenumerate(numbers):
        if np.isfinite(value):
            text = f"{value:.3f}" if values.columns[column] == _SIMILARITY else f"{value:.1f}"
            bold = "bold" if value == np.nanmax(numbers[:, column]) else "normal"
            axes.text(column, line, text, ha="center", va="center", fontsize=SMALL_TEXT_SIZE, fontweight=bold)
    axes.set_xticks(range(numbers.shape[1]), values.columns, rotation=90)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


@styled
def similarity_against_recall(atlas: pd.DataFrame) -> Figure:
    """A dot for each input: its calibrated mutual kNN before training, and its Recall@1 in percent after."""
    figure = new_figure(PAGE_WIDTH, 2.6)
    for axes, (direction, title) in zip(figure.subplots(1, 2, sharex=True), TITLES.items(), strict=True):
        for number, (name, part) in enumerate(atlas.groupby(["text", "family"], sort=False)):
            look = {**series(number), "linestyle": "none"}
            axes.plot(part["calibrated"], 100 * part[f"{direction}_recall_1"], label=", ".join(map(str, name)), **look)
        axes.set_title(title, loc="left")
        axes.set_xlabel("calibrated mutual kNN of training pairs")
        axes.grid()
    figure.axes[0].set_ylabel("R@1 (%)")
    figure.legend(handles=figure.axes[0].get_lines(), loc="outside lower center", ncols=3)
    return figure
