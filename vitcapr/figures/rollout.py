"""Where the ViT gathers what it knows, beside where the captioner looks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from vitcapr.figures.attention import COLOR_MAP, upsample
from vitcapr.figures.captions import print_size
from vitcapr.figures.style import PAGE_WIDTH, SMALL_TEXT_SIZE, TEXT_SIZE, new_figure, styled
from vitcapr.figures.wrapping import LINE_SPACING, shorten, wrap

WORDS = 2
"""Words shown for each picture: those with the most concentrated attention, in the caption's order."""
_COLUMNS = 3 + WORDS
_OPACITY = 0.55
_LEAST_SCALE = 3.0
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
    """A row a picture: itself, the ViT's roll-out, the captioner's attention over all words and for two of them.

    One colour scale serves a row, in multiples of an attention spread evenly, as in the figures of attention. Above
    the mean of all words stands its rank correlation with the roll-out over the patches.
    """
    sizes = [_fit(case.picture) for case in cases]
    captions = [wrap(" ".join(case.words), (PAGE_WIDTH - 2 * _MARGIN) * 72, SMALL_TEXT_SIZE) for case in cases]
    heights = [_TITLE + size[1] + len(lines) * _LINE + 0.12 for size, lines in zip(sizes, captions, strict=True)]
    total = 2 * _MARGIN + sum(heights) + _BAR
    figure = new_figure(PAGE_WIDTH, total)
    relative = [[(title, weights * weights.size) for title, weights in _maps(case)] for case in cases]
    peak = np.concatenate([weights.ravel() for maps in relative for _, weights in maps] or [np.zeros(1)])
    most = max(float(np.quantile(peak, 0.995)), _LEAST_SCALE)
    top, shown = total - _MARGIN, None
    for case, maps, size, lines, height in zip(cases, relative, sizes, captions, heights, strict=True):
        plain = print_size(case.picture, size[0])
        grey = np.asarray(plain.convert("L"))
        for column, (title, weights) in enumerate([("picture", None), *maps]):
            left = _MARGIN + column * (_CELL + _GAP) + (_CELL - size[0]) / 2
            bottom = top - _TITLE - size[1]
            place = (left / PAGE_WIDTH, bottom / total, size[0] / PAGE_WIDTH, size[1] / total)
            axes = figure.add_axes(place)
            axes.set_axis_off()
            spoken = column >= _COLUMNS - WORDS
            axes.set_title(
                shorten(title, _CELL * 72, TEXT_SIZE, "bold"),
                fontsize=TEXT_SIZE,
                pad=3,
                weight="bold" if spoken else "normal",
                style="normal" if spoken else "italic",
            )
            if weights is None:
                axes.imshow(np.asarray(plain), aspect="auto")
                continue
            axes.imshow(grey, cmap="gray", vmin=0, vmax=255, aspect="auto")
            heat = upsample(weights, plain.width, plain.height)
            shown = axes.imshow(heat, cmap=COLOR_MAP, vmin=0, vmax=most, alpha=_OPACITY, aspect="auto")
        for number, line in enumerate(lines):
            y = (top - _TITLE - size[1] - 0.04 - number * _LINE) / total
            figure.text(_MARGIN / PAGE_WIDTH, y, line, fontsize=SMALL_TEXT_SIZE, va="top")
        top -= height
    if shown is not None:
        bar = figure.add_axes((0.3, (_MARGIN + 0.3) / total, 0.4, 0.09 / total))
        figure.colorbar(shown, cax=bar, orientation="horizontal", extend="max")
        bar.set_xlabel(
            "attention, in multiples of an even spread over the patches", fontsize=SMALL_TEXT_SIZE, labelpad=2
        )
    return figure


def _maps(case: Looked) -> list[tuple[str, NDArray[np.floating]]]:
    maps = [("ViT, rolled out", np.asarray(case.rolled_out, np.float32))]
    if len(case.words):
        attended = np.asarray(case.attended, np.float32)
        mean = attended.mean(axis=0)
        maps.append((f"all words (ρ {rank_correlation(case.rolled_out, mean):.2f})", mean))
        maps += [(case.words[word], attended[word]) for word in concentrated(attended, WORDS)]
    return maps


def _fit(picture: Image.Image) -> tuple[float, float]:
    scale = min(_CELL / picture.width, 1.4 * _CELL / picture.height)
    return picture.width * scale, picture.height * scale
