"""Contact sheets of training pictures: each augmentation separately, and Base64."""

import base64
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from vitcapr.data.images import decode
from vitcapr.report.figures.layout import add_axes
from vitcapr.report.figures.style import FAINT, PAGE_WIDTH, SMALL_TEXT_SIZE, new_figure, styled

_GAP, _HEADING = 0.06, 0.2  # inches
_SHOWN = 640
"""Characters of Base64 that are shown."""


@styled
def augmentation_sheet(rows: Sequence[Sequence[np.ndarray]], names: Sequence[str]) -> Figure:
    """A row an image (S, S, 3) uint8, a column a change."""
    side = (PAGE_WIDTH - _GAP * (len(names) + 1)) / len(names)
    height = _HEADING + len(rows) * (side + _GAP) + _GAP
    figure = new_figure(PAGE_WIDTH, height)
    for line, pictures in enumerate(rows):
        for column, picture in enumerate(pictures):
            bottom = height - _HEADING - (line + 1) * (side + _GAP)
            axes = add_axes(figure, _GAP + column * (side + _GAP), bottom, (side, side))
            axes.imshow(picture, aspect="auto")
            if line == 0:
                axes.set_title(names[column], fontsize=SMALL_TEXT_SIZE, pad=3)
    return figure


@styled
def encoding_sheet(content: bytes, max_pixels: int) -> Figure:
    """The image of a file, the beginning of the file in Base64, and what that costs."""
    pixels, text = np.asarray(decode(content, max_pixels)), base64.b64encode(content).decode()
    figure = new_figure(PAGE_WIDTH, 2.2)
    picture = figure.add_axes((0.01, 0.05, 0.3, 0.9))
    picture.imshow(pixels)
    picture.set_axis_off()
    lines = textwrap.wrap(text[:_SHOWN], 64)
    figure.text(0.34, 0.9, "\n".join([*lines, "..."]), family="monospace", fontsize=SMALL_TEXT_SIZE, va="top")
    cost = (
        f"file {len(content):,} bytes; Base64 {len(text):,} characters, {len(text) / len(content) - 1:+.1%}; "
        f"raw RGB {pixels.size:,} bytes"
    )
    figure.text(0.34, 0.08, cost, fontsize=SMALL_TEXT_SIZE, color=FAINT)
    return figure
