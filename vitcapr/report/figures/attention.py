"""Draws the attention of a captioner at each word."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from vitcapr.report.figures.pictures import fit, print_size
from vitcapr.report.figures.style import PAGE_WIDTH, SMALL_TEXT_SIZE, TEXT_SIZE, new_figure, styled
from vitcapr.report.figures.wrapping import LINE_SPACING, shorten

COLUMNS = 6
COLOR_MAP = "inferno"
"""Perceptually uniform, and dark to light in print without colour."""
_OPACITY = 0.55
_LEAST_SCALE = 3.0
_MARGIN, _GAP, _BAR = 0.06, 0.08, 0.5  # inches
_TITLE = TEXT_SIZE * LINE_SPACING / 72 + 0.04


def upsample(weights: NDArray[np.floating], width: int, height: int) -> NDArray[np.float32]:
    """Attention of each patch as attention of each pixel, bilinear between the centres of the patches.

    Args:
        weights: (h, w), a value a patch, the patches tiling the whole picture.

    Returns:
        (height, width) float32; beyond the outermost centres the value of the patch.
    """
    patches = Image.fromarray(np.ascontiguousarray(weights, dtype=np.float32))
    return np.asarray(patches.resize((width, height), Image.Resampling.BILINEAR), dtype=np.float32)


@styled
def attended_words(picture: Image.Image, words: Sequence[str], weights: NDArray[np.floating]) -> Figure:
    """The picture, then the picture under the attention for each word of the caption, the word above it.

    One colour scale serves all words, from no attention to the 99.5th percentile of all weights, in multiples
    of an attention spread evenly over the patches; it reaches at least to three times that, so that a captioner
    that looks everywhere does not seem to look somewhere.

    Args:
        picture: RGB, any size.
        words: the L words of the caption.
        weights: (L, h, w) attention over the grid of patches; each word's sums to 1.
    """
    patches = weights.shape[1] * weights.shape[2]
    relative = np.asarray(weights, dtype=np.float32) * patches
    most = max(float(np.quantile(relative, 0.995)), _LEAST_SCALE) if relative.size else _LEAST_SCALE
    cell = (PAGE_WIDTH - 2 * _MARGIN - (COLUMNS - 1) * _GAP) / COLUMNS
    width, height = fit(picture, cell, 1.4 * cell)
    rows = -(-(len(words) + 1) // COLUMNS)
    total = 2 * _MARGIN + rows * (height + _TITLE + _GAP) + _BAR
    figure = new_figure(PAGE_WIDTH, total)
    plain = print_size(picture, width)
    grey = np.asarray(plain.convert("L"))
    shown = None
    for panel, title in enumerate(["picture", *words]):
        left = _MARGIN + (panel % COLUMNS) * (cell + _GAP) + (cell - width) / 2
        bottom = total - _MARGIN - (panel // COLUMNS + 1) * (height + _TITLE + _GAP) + _GAP
        axes = figure.add_axes((left / PAGE_WIDTH, bottom / total, width / PAGE_WIDTH, height / total))
        axes.set_axis_off()
        axes.set_title(
            shorten(title, cell * 72, TEXT_SIZE, "bold"),
            fontsize=TEXT_SIZE,
            pad=3,
            style="italic" if panel == 0 else "normal",
            weight="normal" if panel == 0 else "bold",
        )
        if panel == 0:
            axes.imshow(np.asarray(plain), aspect="auto")
            continue
        axes.imshow(grey, cmap="gray", vmin=0, vmax=255, aspect="auto")
        shown = axes.imshow(
            upsample(relative[panel - 1], plain.width, plain.height),
            cmap=COLOR_MAP,
            vmin=0,
            vmax=most,
            alpha=_OPACITY,
            aspect="auto",
        )
    if shown is not None:
        bar = figure.add_axes((0.3, (_MARGIN + 0.34) / total, 0.4, 0.09 / total))
        figure.colorbar(shown, cax=bar, orientation="horizontal", extend="max")
        bar.set_xlabel(
            f"attention, in multiples of an even spread over the {weights.shape[1]} x {weights.shape[2]} patches",
            fontsize=SMALL_TEXT_SIZE,
            labelpad=2,
        )
    return figure
