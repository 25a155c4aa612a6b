"""The attention of a captioner at each word, alone and beside the attention roll-out of the ViT."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.offsetbox import OffsetBox
from numpy.typing import NDArray
from PIL import Image

from vitcapr.errors import UserError
from vitcapr.formats.captions import read_attention
from vitcapr.formats.manifest import Manifest
from vitcapr.progress import Reporter
from vitcapr.report.figures.examples import Choice, choose_attended, open_images
from vitcapr.report.figures.page import (
    WIDTH,
    cell_width,
    column,
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
WORDS = 2
"""Words of a caption beside a roll-out: those with the most concentrated attention, in the caption's order."""
_LEAST_SCALE = 3.0
_PEAK = 0.995
"""The quantile of the weights at the end of a scale."""
_GAP, _SCALE = 0.08, 0.5
"""Inches between pictures, and those of the scale below them."""
_COLORS, _OPACITY = colormaps["inferno"], 0.55
"""Of the heat: perceptually uniform, and dark to light in print without colour."""


class Looked(NamedTuple):
    """An image, the L words of its caption, and attention over one grid of patches that sums to 1: the ViT's (h, w) and
    the captioner's for each word (L, h, w)."""

    image: Image.Image
    words: Sequence[str]
    rolled_out: NDArray[np.floating]
    attended: NDArray[np.floating]


def rank_correlation(one: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    """Spearman's, over the patches: 1 where two maps order them alike, NaN where one is flat."""
    ranks = [pd.Series(np.asarray(values, np.float64).ravel()).rank() for values in (one, other)]
    flat = any(rank.nunique() < 2 for rank in ranks)
    return float("nan") if flat else float(ranks[0].corr(ranks[1]))


def concentrated(attended: NDArray[np.floating], count: int) -> list[int]:
    """The ``count`` words whose attention has the lowest entropy, in the order of the caption."""
    weights = np.asarray(attended, np.float64).reshape(len(attended), -1)
    entropy = -(weights * np.log(np.maximum(weights, 1e-12))).sum(axis=1)
    return sorted(int(word) for word in np.argsort(entropy, kind="stable")[:count])


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


def draw_rolled_out(
    data: Manifest,
    split: str,
    captions: Path,
    attention: Path,
    choice: Choice,
    grid: tuple[int, int],
    roll_out: Callable[[Image.Image], NDArray[np.floating]],
    report: Reporter,
) -> Figure:
    """The roll-out of a backbone beside the attention of the captioner, for the images of :func:`draw_attended`.

    Args:
        grid: of the backbone's patches.
        roll_out: from an image to its roll-out (h, w).
    """
    table, cases = read_attention(attention), []
    if grid != table.grid:
        backbone, captioner = (f"{height} x {width}" for height, width in (grid, table.grid))
        what = f"the backbone has {backbone} patches, the captioner attends to {captioner}"
        raise UserError(what, where=attention, remedy="give the backbone that the captioner's features are from")
    with open_images(data) as read:
        for row, caption, weights in choose_attended(data, split, captions, table, choice):
            image = read(row)
            cases.append(Looked(image, caption.tokens, roll_out(image), weights))
            report.line(f"image {caption.image_id}: {caption.caption}")
    return rolled_out_and_attended(cases)


@styled
def attended_words(image: Image.Image, words: Sequence[str], weights: NDArray[np.floating], note: str = "") -> Figure:
    """The image, then the image under the attention for each word, the word above it; and a note, such as the caption.

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


@styled
def rolled_out_and_attended(cases: Sequence[Looked]) -> Figure:
    """One row per image: the image, the ViT's roll-out, the captioner's attention over all words and for two words.

    A roll-out is much flatter than attention, so each map has a scale of its own, from no attention to its peak (the
    99.5th percentile), which stands below it in multiples of an attention spread evenly over the patches; so does, for
    all words, the rank correlation with the roll-out.
    """
    width, blocks = cell_width(3 + WORDS, _GAP), list[OffsetBox]()
    for image, words, *both in cases:
        rolled_out, attended = (np.asarray(weights, np.float32) for weights in both)
        maps = [("ViT, rolled out", rolled_out, "")]
        if len(words):
            mean = attended.mean(axis=0)
            maps.append(("captioner, all words", mean, f", ρ {rank_correlation(rolled_out, mean):.2f}"))
            maps += [(words[word], attended[word], "") for word in concentrated(attended, WORDS)]
        titles = [_title(title, width) for title in ("image", *(title for title, _, _ in maps))]
        panels = [_panel(image, width)]
        for _, weights, correlation in maps:
            relative = weights * weights.size
            peak = max(float(np.quantile(relative, _PEAK)), 1e-6)
            note = paragraph(f"peak {peak:.1f}{correlation}", width)
            panels.append(column(_panel(image, width, relative / peak), space(0.03), note))
        blocks += [grid(titles, 3 + WORDS, _GAP, _GAP, panels), paragraph(" ".join(words), WIDTH), space(0.14)]
    return _with_scale(blocks, "attention; the peak in multiples of an even spread", ticks=["none", "peak"])


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


def _with_scale(blocks: Sequence[OffsetBox], label: str, most: float = 1.0, ticks: Sequence[str] = ()) -> Figure:
    """A page with the colour bar of the attention at its end, with words at both ends of it in place of numbers."""
    figure = page(*blocks, space(_SCALE))
    height = figure.get_size_inches()[1]
    bar = figure.add_axes((0.3, (_SCALE - 0.1) / height, 0.4, 0.09 / height))
    colors = ScalarMappable(Normalize(0, most), _COLORS)
    figure.colorbar(
        colors, cax=bar, orientation="horizontal", extend="max", alpha=_OPACITY, ticks=[0, most] if ticks else None
    )
    bar.set_xlabel(label, fontsize=SMALL_TEXT_SIZE, labelpad=2)
    if ticks:
        bar.set_xticklabels(ticks)
    return figure
