"""The attention of a captioner at each word, alone and beside the attention roll-out of the ViT."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from PIL import Image

from vitcapr.errors import UserError
from vitcapr.formats.captions import AttentionTable
from vitcapr.report.figures.layout import LINE, MARGIN, TEXT_LINE, add_axes, fit, print_size, shorten, wrap, write
from vitcapr.report.figures.style import PAGE_WIDTH, SMALL_TEXT_SIZE, TEXT_SIZE, new_figure, styled

COLUMNS = 6
COLOR_MAP = "inferno"
"""Perceptually uniform, and dark to light in print without colour."""
WORDS = 2
"""Words of a caption beside a roll-out: those with the most concentrated attention, in the caption's order."""
_OPACITY = 0.55
_LEAST_SCALE = 3.0
_PEAK = 0.995
"""The quantile of the weights at the end of a scale."""
_GAP, _BAR = 0.08, 0.5  # inches
_TITLE = TEXT_LINE + 0.04


@dataclass(frozen=True, eq=False)
class Looked:
    """An image, its caption, and two kinds of attention over one grid of patches.

    Attributes:
        rolled_out: (h, w), the ViT's; sums to 1.
        attended: (L, h, w), the captioner's for each of the L words; each sums to 1.
    """

    picture: Image.Image
    words: Sequence[str]
    rolled_out: NDArray[np.floating]
    attended: NDArray[np.floating]


def upsample(weights: NDArray[np.floating], width: int, height: int) -> NDArray[np.float32]:
    """Attention (h, w) of each patch as attention (height, width) of each pixel of the image that the patches tile.

    Bilinear between the centres of the patches; beyond the outermost centres the value of the patch.
    """
    patches = Image.fromarray(np.ascontiguousarray(weights, dtype=np.float32))
    return np.asarray(patches.resize((width, height), Image.Resampling.BILINEAR), dtype=np.float32)


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


def check_grid(grid: tuple[int, int], table: AttentionTable, where: Path) -> None:
    """Refuse a captioner that attends to another grid of patches than the backbone's."""
    if grid != table.grid:
        backbone, captioner = (f"{height} x {width}" for height, width in (grid, table.grid))
        raise UserError(
            f"the backbone has {backbone} patches, the captioner attends to {captioner}",
            where=where,
            remedy="give the backbone that the captioner's features are from",
        )


@styled
def attended_words(picture: Image.Image, words: Sequence[str], weights: NDArray[np.floating]) -> Figure:
    """The image, then the image under the attention for each word of the caption, the word above it.

    One colour scale serves all words, from no attention to the 99.5th percentile of all weights, in multiples
    of an attention spread evenly over the patches; it reaches at least to three times that, so that a captioner
    that looks everywhere does not seem to look somewhere.

    Args:
        picture: RGB, any size.
        words: the L words of the caption.
        weights: (L, h, w) attention over the grid of patches; each word's sums to 1.
    """
    _, rows, columns = weights.shape
    relative = np.asarray(weights, dtype=np.float32) * (rows * columns)
    most = max(float(np.quantile(relative, _PEAK)), _LEAST_SCALE) if relative.size else _LEAST_SCALE
    cell = (PAGE_WIDTH - 2 * MARGIN - (COLUMNS - 1) * _GAP) / COLUMNS
    size = fit(picture, cell, 1.4 * cell)
    row = size[1] + _TITLE + _GAP
    total = 2 * MARGIN + -(-(len(words) + 1) // COLUMNS) * row + _BAR
    figure = new_figure(PAGE_WIDTH, total)
    heat = None
    for panel, title in enumerate(["picture", *words]):
        left = MARGIN + (panel % COLUMNS) * (cell + _GAP) + (cell - size[0]) / 2
        axes = add_axes(figure, left, total - MARGIN - (panel // COLUMNS + 1) * row + _GAP, size)
        _set_title(axes, title, cell, is_word=panel > 0)
        heat = _draw(axes, picture, size[0], relative[panel - 1] if panel else None, most) or heat
    if heat is not None:
        label = f"attention, in multiples of an even spread over the {rows} x {columns} patches"
        _draw_scale(figure, heat, 0.34, label)
    return figure


@styled
def rolled_out_and_attended(cases: Sequence[Looked]) -> Figure:
    """One row per image: the image, the ViT's roll-out, the captioner's attention over all words and for two words.

    A roll-out is much flatter than attention, so each map has a scale of its own, from no attention to its peak (the
    99.5th percentile), which stands below it in multiples of an attention spread evenly over the patches; so does, for
    all words, the rank correlation with the roll-out.
    """
    columns = 3 + WORDS
    cell = (PAGE_WIDTH - 2 * MARGIN - (columns - 1) * _GAP) / columns
    sizes = [fit(case.picture, cell, 1.4 * cell) for case in cases]
    captions = [wrap(" ".join(case.words), (PAGE_WIDTH - 2 * MARGIN) * 72, SMALL_TEXT_SIZE) for case in cases]
    heights = [_TITLE + size[1] + (1 + len(lines)) * LINE + 0.14 for size, lines in zip(sizes, captions, strict=True)]
    total = 2 * MARGIN + sum(heights) + _BAR
    figure = new_figure(PAGE_WIDTH, total)
    top, heat = total - MARGIN, None
    for case, size, lines, height in zip(cases, sizes, captions, heights, strict=True):
        under = top - _TITLE - size[1] - 0.03
        for column, panel in enumerate([_Map("picture"), *_maps(case)]):
            start = MARGIN + column * (cell + _GAP)
            axes = add_axes(figure, start + (cell - size[0]) / 2, under + 0.03, size)
            _set_title(axes, panel.title, cell, panel.is_word)
            relative, peak = None, 1.0
            if panel.weights is not None:
                relative = panel.weights * panel.weights.size
                peak = max(float(np.quantile(relative, _PEAK)), 1e-6)
                write(figure, f"peak {peak:.1f}{panel.note}", start + cell / 2, under, align="center")
                relative = relative / peak
            heat = _draw(axes, case.picture, size[0], relative, 1) or heat
        for number, line in enumerate(lines, start=1):
            write(figure, line, MARGIN, under - number * LINE)
        top -= height
    if heat is not None:
        bar = _draw_scale(figure, heat, 0.3, "attention; the peak in multiples of an even spread", ticks=[0, 1])
        bar.set_xticklabels(["none", "peak"])
    return figure


class _Map(NamedTuple):
    """A panel: attention over the patches, or None for the image itself."""

    title: str
    weights: NDArray[np.floating] | None = None
    note: str = ""
    is_word: bool = False


def _maps(case: Looked) -> list[_Map]:
    rolled_out = np.asarray(case.rolled_out, np.float32)
    maps = [_Map("ViT, rolled out", rolled_out)]
    if len(case.words):
        attended = np.asarray(case.attended, np.float32)
        mean = attended.mean(axis=0)
        maps.append(_Map("captioner, all words", mean, f", ρ {rank_correlation(rolled_out, mean):.2f}"))
        maps += [_Map(case.words[word], attended[word], is_word=True) for word in concentrated(attended, WORDS)]
    return maps


def _draw(
    axes: Axes, picture: Image.Image, width: float, weights: NDArray[np.floating] | None, most: float
) -> AxesImage | None:
    """The image in grey under its attention (h, w), on a scale from 0 to ``most``; without attention, in colour."""
    plain = print_size(picture, width)
    if weights is None:
        axes.imshow(np.asarray(plain), aspect="auto")
        return None
    axes.imshow(np.asarray(plain.convert("L")), cmap="gray", vmin=0, vmax=255, aspect="auto")
    heat = upsample(weights, plain.width, plain.height)
    return axes.imshow(heat, cmap=COLOR_MAP, vmin=0, vmax=most, alpha=_OPACITY, aspect="auto")


def _set_title(axes: Axes, title: str, cell: float, is_word: bool) -> None:
    look: dict[str, Any] = {"weight": "bold"} if is_word else {"style": "italic"}
    axes.set_title(shorten(title, cell * 72, TEXT_SIZE, "bold"), fontsize=TEXT_SIZE, pad=3, **look)


def _draw_scale(figure: Figure, heat: AxesImage, bottom: float, label: str, **options: Any) -> Axes:
    """A colour bar ``bottom`` inches above the lower margin."""
    total = figure.get_size_inches()[1]
    bar = figure.add_axes((0.3, (MARGIN + bottom) / total, 0.4, 0.09 / total))
    figure.colorbar(heat, cax=bar, orientation="horizontal", extend="max", **options)
    bar.set_xlabel(label, fontsize=SMALL_TEXT_SIZE, labelpad=2)
    return bar
