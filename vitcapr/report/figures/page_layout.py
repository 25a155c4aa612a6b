"""Pages of text and images: boxes of matplotlib, packed one under another or side by side, each as high as it needs.

Lengths are in inches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.offsetbox import (
    AnchoredOffsetbox,
    DrawingArea,
    HPacker,
    OffsetBox,
    OffsetImage,
    PaddedBox,
    VPacker,
)
from matplotlib.text import Text
from PIL import Image

from vitcapr.report.figures.style import (
    DPI,
    INK,
    PAGE_WIDTH,
    SMALL_TEXT_SIZE,
    new_figure,
    split_words,
    styled,
    text_width,
)

MARGIN = 0.06
"""Around the content of a page."""
WIDTH = PAGE_WIDTH - 2 * MARGIN
"""Width of the content of a page."""
_LINE_SPACING = 1.25
"""Distance of two base lines in font sizes."""
STRUCK, UNDERLINED = 0.56, 1.14
"""Distance from the top of a word to the line through it or under it, in font sizes."""
_IN_POINTS = RendererAgg(1, 1, 72)


@dataclass(frozen=True)
class Word:
    """Words that look alike; ``mark`` is where a line goes through or under it (:data:`STRUCK`, :data:`UNDERLINED`)."""

    text: str
    color: str = INK
    mark: float | None = None
    line: str | None = None
    """The colour of the line, if it is not that of the words."""


def lines_of_text(
    lines: Sequence[Sequence[Word]], bold: bool = False, size: float = SMALL_TEXT_SIZE, family: str | None = None
) -> OffsetBox:
    """Lines, with a space between two pieces that look different."""
    weight, leading = "bold" if bold else "normal", size * _LINE_SPACING
    space = text_width("a b", size) - text_width("ab", size)
    area = DrawingArea(0, len(lines) * leading)
    for number, line in enumerate(lines):
        left, top = 0.0, area.height - number * leading
        for word in line:
            look: dict[str, Any] = {"fontsize": size, "weight": weight, "color": word.color, "family": family}
            area.add_artist(Text(left, top, word.text, va="top", **look))
            right = left + text_width(word.text, size, weight)
            if word.mark is not None:
                stroke: dict[str, Any] = {"color": word.line or word.color, "linewidth": 0.7, "solid_capstyle": "butt"}
                area.add_artist(Line2D([left, right], [top - word.mark * size] * 2, **stroke))
            left = right + space
    return area


def wrap(words: Sequence[Word], width: float, bold: bool = False, size: float = SMALL_TEXT_SIZE) -> list[list[Word]]:
    """``words``, each a text of any length, in lines of at most ``width``."""
    weight = "bold" if bold else "normal"
    lines: list[list[Word]] = [[]]
    for words_alike in words:
        for text in split_words(words_alike.text, width * 72, size, weight):
            line = lines[-1]
            if line and text_width(" ".join([*(word.text for word in line), text]), size, weight) > width * 72:
                lines.append([])
            new = replace(words_alike, text=text)
            if lines[-1] and replace(lines[-1][-1], text=text) == new:
                lines[-1][-1] = replace(new, text=f"{lines[-1][-1].text} {text}")
            else:
                lines[-1].append(new)
    return [line for line in lines if line]


def flow(words: Sequence[Word], width: float, bold: bool = False, size: float = SMALL_TEXT_SIZE) -> OffsetBox:
    """Return the box of :func:`wrap`."""
    return lines_of_text(wrap(words, width, bold, size), bold, size)


def paragraph(
    text: str, width: float, color: str = INK, bold: bool = False, size: float = SMALL_TEXT_SIZE
) -> OffsetBox:
    """``text`` in lines of at most ``width``."""
    return flow([Word(text, color)], width, bold, size)


def picture(image: Image.Image, width: float, height: float, frame: str | None = None) -> OffsetBox:
    """``image`` as large as ``width x height`` allow, in a frame of a colour."""
    fit = min(width, height * image.width / image.height)
    pixels = np.asarray(print_size(image, fit))
    box = OffsetImage(pixels, zoom=72 * fit / pixels.shape[1], interpolation="lanczos")
    look = {"fill": False, "edgecolor": frame, "linewidth": 3}  # The image covers its inner half.
    return box if frame is None else PaddedBox(box, draw_frame=True, patch_attrs=look)


def space(height: float, width: float = 0) -> OffsetBox:
    """Return an empty box of this height and width, in inches."""
    return DrawingArea(72 * width, 72 * height)


def column(*blocks: OffsetBox, width: float = 0, align: Literal["left", "center"] = "left") -> OffsetBox:
    """Blocks one under another, at least ``width`` wide."""
    return VPacker(pad=0, sep=0, align=align, children=[space(0, width), *blocks])


def row(blocks: Sequence[OffsetBox], step: float, align: Literal["top", "bottom"] = "top") -> OffsetBox:
    """Blocks side by side, each ``step`` right of the one before, with level upper or lower edges."""
    return HPacker(pad=0, sep=0, align=align, children=[column(block, width=step) for block in blocks])


def height_of(block: OffsetBox) -> float:
    return float(block.get_bbox(_IN_POINTS).height) / 72


def cell_width(columns: int, gap: float) -> float:
    """Return the width of one of ``columns`` columns of a page."""
    return (WIDTH - (columns - 1) * gap) / columns


def grid(
    upper: Sequence[OffsetBox], columns: int, gap: float, between: float, lower: Sequence[OffsetBox] = ()
) -> OffsetBox:
    """Cells in rows of ``columns``, with ``gap`` between two columns and ``between`` between two rows.

    Args:
        upper: of each cell; the lower edges in a row are level if there is a ``lower``.
        lower: what stands under each of them; the upper edges in a row are level.
    """
    step = cell_width(columns, gap) + gap
    rows: list[OffsetBox] = []
    for first in range(0, len(upper), columns):
        cells = slice(first, first + columns)
        rows += [space(between)] if rows else []
        rows.append(row(upper[cells], step, "bottom" if lower else "top"))
        rows += [row(lower[cells], step)] if lower else []
    return column(*rows)


def page(*blocks: OffsetBox) -> Figure:
    """Return a page as high as its blocks."""
    content = column(*blocks)
    height = height_of(content) + 2 * MARGIN
    figure = new_figure(PAGE_WIDTH, height, layout=None)
    corner = MARGIN / PAGE_WIDTH, 1 - MARGIN / height
    place: dict[str, Any] = {"bbox_to_anchor": corner, "bbox_transform": figure.transFigure}
    figure.add_artist(AnchoredOffsetbox("upper left", child=content, pad=0, borderpad=0, frameon=False, **place))
    return figure


def print_size(image: Image.Image, width: float) -> Image.Image:
    """``image`` with no more pixels than ``width`` of print can show; never enlarged."""
    pixels = round(width * DPI)
    if image.width <= pixels:
        return image
    size = pixels, max(1, round(image.height * pixels / image.width))
    return image.resize(size, Image.Resampling.LANCZOS)


@styled
def nothing_to_draw(why: str) -> Figure:
    """Return a page that says why a picture is missing: a rule names its pictures before the data are known."""
    return page(paragraph(why, WIDTH))
