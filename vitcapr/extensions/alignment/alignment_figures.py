"""The figures of alignments: recall of a study, and a heat map of what inputs give."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitcapr.report.direction import TITLES
from vitcapr.report.figures.recall import learning_curve
from vitcapr.report.figures.style import PAGE_WIDTH, SMALL_TEXT_SIZE, new_figure, styled

_INPUT = 0.17
"""Inches that an input takes."""
_SHORT = {"i2t_recall_1": "I→T R@1", "t2i_recall_1": "T→I R@1"}
_SIMILARITY = "calibrated kNN"


def alignment_curve(scores: pd.DataFrame) -> Figure:
    """Return the learning curve of a study of alignments from its scores.csv."""
    recalls = scores.rename(columns={f"{direction}_recall_1": direction for direction in TITLES})
    systems = {str(system): runs for system, runs in recalls.groupby("system", sort=False)}
    images, captions = (f"{int(scores[name].iloc[0]):,} {name}" for name in ("images", "captions"))
    pools = {"i2t": f"{images} among {captions}", "t2i": f"{captions} among {images}"}
    return learning_curve(systems, pools)


@styled
def heat_map(atlas: pd.DataFrame, captioners: pd.DataFrame) -> Figure:
    """Return a row for each input, a panel for each text encoder, and one for the captioners.

    Args:
        atlas: see :func:`vitcapr.extensions.alignment.atlas.read_atlas`.
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
    axes.imshow(shade, cmap="Blues", vmin=0, vmax=1.8, aspect="auto")
    for (line, column), value in np.ndenumerate(numbers):
        if np.isfinite(value):
            text = f"{value:.3f}" if values.columns[column] == _SIMILARITY else f"{value:.1f}"
            bold = "bold" if value == np.nanmax(numbers[:, column]) else "normal"
            axes.text(column, line, text, ha="center", va="center", fontsize=SMALL_TEXT_SIZE, fontweight=bold)
    axes.set_xticks(range(numbers.shape[1]), values.columns, rotation=90)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
