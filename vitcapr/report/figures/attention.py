"""Figures of the attention of a captioner at each word."""

from collections.abc import Sequence

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.offsetbox import OffsetBox
from numpy.typing import NDArray
from PIL import Image

from vitcapr.report.attended import DUSK, full_light, lit
from vitcapr.report.figures.page_layout import (
    WIDTH,
    cell_width,
    grid,
    page,
    paragraph,
    picture,
    print_size,
    space,
)
from vitcapr.report.figures.style import DPI, SMALL_TEXT_SIZE, TEXT_SIZE, styled

COLUMNS = 6
_GAP, _SCALE = 0.08, 0.5
"""Inches between pictures, and those of the scale below them."""
_LIGHT = LinearSegmentedColormap.from_list("light", [str(1 - DUSK), "1"])


@styled
def attended_words(image: Image.Image, words: Sequence[str], weights: NDArray[np.floating], note: str = "") -> Figure:
    """Draw the image, then the image under the attention of each word, with an optional note.

    The word stands above its image. The note may be the caption.

    One scale serves all words, from no attention to the largest, in multiples of the even share of the patches.

    Args:
        image: RGB, any size.
        words: L words.
        weights: (L, h, w) attention over the grid of patches; each word's sums to 1.
    """
    _, rows, columns = weights.shape
    multiples = np.asarray(weights, dtype=np.float32) * (rows * columns)
    full = full_light(multiples)
    width = cell_width(COLUMNS, _GAP)
    titles = [paragraph(title, width, bold=True, size=TEXT_SIZE) for title in ("image", *words)]
    panels = [_panel(image, width), *(_panel(image, width, (each, full)) for each in multiples)]
    blocks = [grid(titles, COLUMNS, _GAP, _GAP, panels), space(_GAP)]
    if note:
        blocks += [paragraph(note, WIDTH), space(_GAP)]
    if not len(words):
        return page(*blocks)
    label = f"attention, in multiples of the even share of the {rows} x {columns} patches; the line encloses half of it"
    return _with_scale(blocks, label, full)


def _panel(image: Image.Image, width: float, light: tuple[NDArray[np.floating], float] | None = None) -> OffsetBox:
    plain = print_size(image, width)
    if light is not None:  # a line needs more pixels than a small photograph has
        finer = max(1, round(width * DPI / plain.width))
        plain = lit(plain.resize((finer * plain.width, finer * plain.height), Image.Resampling.BICUBIC), *light)
    return picture(plain, width, 1.4 * width)


def _with_scale(blocks: Sequence[OffsetBox], label: str, most: float) -> Figure:
    """Return a page with the bar of the light at its end."""
    figure = page(*blocks, space(_SCALE))
    height = figure.get_size_inches()[1]
    bar = figure.add_axes((0.3, (_SCALE - 0.1) / height, 0.4, 0.09 / height))
    figure.colorbar(ScalarMappable(PowerNorm(0.5, 0, most), _LIGHT), cax=bar, orientation="horizontal")
    bar.set_xlabel(label, fontsize=SMALL_TEXT_SIZE, labelpad=2)
    return figure
