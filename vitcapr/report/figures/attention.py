"""Figures of the attention of a captioner at each word."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.offsetbox import OffsetBox
from numpy.typing import NDArray
from PIL import Image

from vitcapr.formats.captions import read_attention
from vitcapr.formats.manifest import Manifest
from vitcapr.progress import Reporter
from vitcapr.report.figures.examples import Choice, choose_attended, open_images
from vitcapr.report.figures.page import (
    WIDTH,
    cell_width,
    grid,
    nothing_to_draw,
    page,
    paragraph,
    picture,
    print_size,
    space,
)
from vitcapr.report.figures.style import SMALL_TEXT_SIZE, TEXT_SIZE, styled

COLUMNS = 6
_LEAST_SCALE = 3.0
_PEAK = 0.995
"""The quantile of the weights at the end of a scale."""
_GAP, _SCALE = 0.08, 0.5
"""Inches between pictures, and those of the scale below them."""
_COLORS, _OPACITY = colormaps["inferno"], 0.55
"""Of the heat: perceptually uniform, and dark to light in print without colour."""


def draw_attended(
    data: Manifest, split: str, captions: Path, attention: Path, choice: Choice, report: Reporter
) -> dict[str, Figure]:
    """``attention-1`` and so on: chosen images with the attention at the chosen words of the caption, or at all."""
    chosen, figures = choose_attended(data, split, captions, read_attention(attention), choice), {}
    with open_images(data) as read:
        for number, (row, caption, weights) in enumerate(chosen, 1):
            report.line(f"image {caption.image_id}: {caption.caption}")
            places = [place for place, token in enumerate(caption.tokens) if token in choice.words]
            if choice.words and not places:
                report.line(f"the caption has none of {', '.join(choice.words)}; all its words are drawn")
            places, best = places or [*range(len(caption.tokens))], caption.candidates[0]
            note = f"{caption.caption} (score {best.score:.2f}, log-probability {best.log_prob:.2f})"
            words = [caption.tokens[place] for place in places]
            figures[f"attention-{number}"] = attended_words(read(row), words, weights[places], note)
    for number in range(len(chosen) + 1, choice.count + 1):
        figures[f"attention-{number}"] = nothing_to_draw(
            f"The split '{split}' has {len(chosen)} images with a caption."
        )
    return figures


@styled
def attended_words(image: Image.Image, words: Sequence[str], weights: NDArray[np.floating], note: str = "") -> Figure:
    """Draw the image, then the image under the attention of each word, with an optional note.

    The word stands above its image. The note may be the caption.

    One colour scale serves all words, from no attention to the 99.5th percentile of all weights, in multiples
    of an attention spread evenly over the patches; it reaches at least to three times that, so that a captioner
    that looks everywhere does not seem to look somewhere.

    Args:
        image: RGB, any size.
        words: L words.
        weights: (L, h, w) attention over the grid of patches; each word's sums to 1.
    """
    _, rows, columns = weights.shape
    relative = np.asarray(weights, dtype=np.float32) * (rows * columns)
    most = max(float(np.quantile(relative, _PEAK)), _LEAST_SCALE) if relative.size else _LEAST_SCALE
    width = cell_width(COLUMNS, _GAP)
    titles = [_title(title, width) for title in ("image", *words)]
    panels = [_panel(image, width), *(_panel(image, width, heat / most) for heat in relative)]
    blocks = [grid(titles, COLUMNS, _GAP, _GAP, panels), space(_GAP)]
    if note:
        blocks += [paragraph(note, WIDTH), space(_GAP)]
    if not len(words):
        return page(*blocks)
    return _with_scale(blocks, f"attention, in multiples of an even spread over the {rows} x {columns} patches", most)


def _title(title: str, width: float) -> OffsetBox:
    return paragraph(title, width, bold=True, size=TEXT_SIZE)


def _panel(image: Image.Image, width: float, heat: NDArray[np.floating] | None = None) -> OffsetBox:
    plain = print_size(image, width)
    return picture(plain if heat is None else heated(plain, heat), width, 1.4 * width)


def heated(image: Image.Image, heat: NDArray[np.floating]) -> Image.Image:
    """``image`` in grey under the colours of attention (h, w) over the patches that tile it; 1 is the end of the scale.

    Attention is bilinear between the centres of the patches; beyond the outermost centres it is that of the patch.
    """
    patches = Image.fromarray(np.ascontiguousarray(heat, dtype=np.float32))
    colors = _COLORS(np.asarray(patches.resize(image.size, Image.Resampling.BILINEAR)), bytes=True)[..., :3]
    return Image.blend(image.convert("L").convert("RGB"), Image.fromarray(colors), _OPACITY)


def _with_scale(blocks: Sequence[OffsetBox], label: str, most: float) -> Figure:
    """Return a page with the colour bar of the attention at its end."""
    figure = page(*blocks, space(_SCALE))
    height = figure.get_size_inches()[1]
    bar = figure.add_axes((0.3, (_SCALE - 0.1) / height, 0.4, 0.09 / height))
    colors = ScalarMappable(Normalize(0, most), _COLORS)
    figure.colorbar(colors, cax=bar, orientation="horizontal", extend="max", alpha=_OPACITY)
    bar.set_xlabel(label, fontsize=SMALL_TEXT_SIZE, labelpad=2)
    return figure
