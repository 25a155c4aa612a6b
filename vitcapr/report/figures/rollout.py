"""The attention roll-out of the ViT beside the attention of the captioner."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from vitcapr.errors import UserError
from vitcapr.formats.captions import AttentionTable
from vitcapr.report.figures.attention import COLOR_MAP, upsample
from vitcapr.report.figures.pictures import fit, print_size
from vitcapr.report.figures.style import PAGE_WIDTH, SMALL_TEXT_SIZE, TEXT_SIZE, new_figure, styled
from vitcapr.report.figures.wrapping import LINE_SPACING, shorten, wrap

WORDS = 2
"""Words shown for each picture: those with the most concentrated attention, in the caption's order."""
_COLUMNS = 3 + WORDS
_OPACITY = 0.55
_MARGIN, _GAP, _BAR = 0.06, 0.08, 0.5  # inches
_CELL = (PAGE_WIDTH - 2 * _MARGIN - (_COLUMNS - 1) * _GAP) / _COLUMNS
_TITLE = TEXT_SIZE * LINE_SPACING / 72 + 0.04
_LINE = SMALL_TEXT_SIZE * LINE_SPACING / 72


@dataclass(frozen=True, eq=False)
class Looked:
    """A picture, its caption, and two kinds of attention over one grid of patches.

    Attributes:
        rolled_out: (h, w), the ViT's; sums to 1.
        attended: (L, h, w), the captioner's for each of the L words; each sums to 1.
    """

    picture: Image.Image
    words: Sequence[str]
    rolled_out: NDArray[np.floating]
    attended: NDArray[np.floating]

    def __post_init__(self) -> None:
        if self.attended.shape != (len(self.words), *self.rolled_out.shape):
            raise ValueError(f"attention {self.attended.shape} for {len(self.words)} words on {self.rolled_out.shape}")


def check_grid(grid: tuple[int, int], table: AttentionTable, where: Path) -> None:
    """Raises:
    UserError: the captioner attends to another grid of patches than the backbone's.
    """
    if grid != table.grid:
        raise UserError(
            f"the backbone has {_by(grid)} patches, the captioner attends to {_by(table.grid)}",
            where=where,
            remedy="give the backbone that the captioner's features are from",
        )


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


@styled
def rolled_out_and_attended(cases: Sequence[Looked]) -> Figure:
    """One row per picture: the picture, the ViT's roll-out, the captioner's attention over all words and for two words.

    A roll-out is much flatter than attention, so each map has a scale of its own, from no attention to its peak (the
    99.5th percentile), which stands below it in multiples of an attention spread evenly over the patches; so does, for
    all words, the rank correlation with the roll-out.
    """
    sizes = [fit(case.picture, _CELL, 1.4 * _CELL) for case in cases]
    captions = [wrap(" ".join(case.words), (PAGE_WIDTH - 2 * _MARGIN) * 72, SMALL_TEXT_SIZE) for case in cases]
    heights = [_TITLE + size[1] + (1 + len(lines)) * _LINE + 0.14 for size, lines in zip(sizes, captions, strict=True)]
    total = 2 * _MARGIN + sum(heights) + _BAR
    figure = new_figure(PAGE_WIDTH, total)
    top, shown = total - _MARGIN, None
    for case, size, lines, height in zip(cases, sizes, captions, heights, strict=True):
        plain = print_size(case.picture, size[0])
        grey = np.asarray(plain.convert("L"))
        under = top - _TITLE - size[1] - 0.03
        for column, panel in enumerate([_Map("picture"), *_maps(case)]):
            left = _MARGIN + column * (_CELL + _GAP) + (_CELL - size[0]) / 2
            place = (left / PAGE_WIDTH, (under + 0.03) / total, size[0] / PAGE_WIDTH, size[1] / total)
            axes = figure.add_axes(place)
            axes.set_axis_off()
            look: dict[str, Any] = {"weight": "bold"} if panel.is_word else {"style": "italic"}
            axes.set_title(shorten(panel.title, _CELL * 72, TEXT_SIZE, "bold"), fontsize=TEXT_SIZE, pad=3, **look)
            if panel.weights is None:
                axes.imshow(np.asarray(plain), aspect="auto")
                continue
            relative = panel.weights * panel.weights.size
            peak = max(float(np.quantile(relative, 0.995)), 1e-6)
            axes.imshow(grey, cmap="gray", vmin=0, vmax=255, aspect="auto")
            heat = upsample(relative / peak, plain.width, plain.height)
            shown = axes.imshow(heat, cmap=COLOR_MAP, vmin=0, vmax=1, alpha=_OPACITY, aspect="auto")
            middle = _MARGIN + column * (_CELL + _GAP) + _CELL / 2
            note = f"peak {peak:.1f}{panel.note}"
            figure.text(middle / PAGE_WIDTH, under / total, note, fontsize=SMALL_TEXT_SIZE, va="top", ha="center")
        for number, line in enumerate(lines, start=1):
            y = (under - number * _LINE) / total
            figure.text(_MARGIN / PAGE_WIDTH, y, line, fontsize=SMALL_TEXT_SIZE, va="top")
        top -= height
    if shown is not None:
        bar = figure.add_axes((0.3, (_MARGIN + 0.3) / total, 0.4, 0.09 / total))
        figure.colorbar(shown, cax=bar, orientation="horizontal", extend="max", ticks=[0, 1])
        bar.set_xticklabels(["none", "peak"])
        bar.set_xlabel("attention; the peak in multiples of an even spread", fontsize=SMALL_TEXT_SIZE, labelpad=2)
    return figure


@dataclass(frozen=True, eq=False)
class _Map:
    """A panel: attention over the patches, or None for the picture itself."""

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


def _by(grid: tuple[int, int]) -> str:
    return f"{grid[0]} x {grid[1]}"
