"""Pages of text and images: blocks one under another or side by side, each as high as it needs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from PIL import Image

from vitcapr.report.figures.fonts import split_words, text_width
from vitcapr.report.figures.style import DPI, INK, PAGE_WIDTH, SMALL_TEXT_SIZE, new_figure

MARGIN = 0.06
"""Inches around the content of a page."""
WIDTH = PAGE_WIDTH - 2 * MARGIN
"""Inches of the content of a page."""
COLOR_MAP = "inferno"
"""Perceptually uniform, and dark to light in print without colour."""
_LINE_SPACING = 1.25
"""Distance of two base lines in font sizes."""
_OPACITY = 0.55
STRUCK, UNDERLINED = 0.56, 1.14
"""Distance from the top of a word to the line through it or under it, in font sizes."""


class Block(Protocol):
    """A part of a page. Lengths are in inches; ``left, top`` is its upper left corner from the page's lower left."""

    @property
    def height(self) -> float: ...

    def draw(self, figure: Figure, left: float, top: float) -> None: ...


@dataclass(frozen=True)
class Word:
    """Words that look alike; ``mark`` is where a line goes through or under it (:data:`STRUCK`, :data:`UNDERLINED`)."""

    text: str
    color: str = INK
    mark: float | None = None
    line: str | None = None
    """The colour of the line, if it is not that of the words."""


@dataclass(frozen=True)
class Text:
    """Lines, with a space between two pieces that look different."""

    lines: Sequence[Sequence[Word]]
    bold: bool = False
    size: float = SMALL_TEXT_SIZE
    family: str | None = None

    @property
    def height(self) -> float:
        return len(self.lines) * self.size * _LINE_SPACING / 72

    def draw(self, figure: Figure, left: float, top: float) -> None:
        width, height = figure.get_size_inches()
        space = text_width("a b", self.size) - text_width("ab", self.size)
        for number, line in enumerate(self.lines):
            place, level = left, top - number * self.size * _LINE_SPACING / 72
            for word in line:
                weight = "bold" if self.bold else "normal"
                look: dict[str, Any] = {
                    "fontsize": self.size,
                    "weight": weight,
                    "color": word.color,
                    "family": self.family,
                }
                figure.text(place / width, level / height, word.text, va="top", **look)
                end = place + text_width(word.text, self.size, weight) / 72
                if word.mark is not None:
                    across, up = [place / width, end / width], (level - word.mark * self.size / 72) / height
                    figure.add_artist(
                        Line2D(across, [up] * 2, color=word.line or word.color, linewidth=0.7, solid_capstyle="butt")
                    )
                place = end + space / 72


def flow(words: Sequence[Word], width: float, bold: bool = False, size: float = SMALL_TEXT_SIZE) -> Text:
    """``words``, each a text of any length, in lines of at most ``width`` inches."""
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
    return Text([line for line in lines if line], bold, size)


def paragraph(text: str, width: float, color: str = INK, bold: bool = False, size: float = SMALL_TEXT_SIZE) -> Text:
    """``text`` in lines of at most ``width`` inches."""
    return flow([Word(text, color)], width, bold, size)


@dataclass(frozen=True, eq=False)
class Panel:
    """An image of ``width`` inches, ``indent`` inches from the left of the block.

    Attributes:
        heat: (h, w) attention over the patches that tile the image: it covers the image, which is then grey.
        most: the attention at the end of the scale, which begins at 0.
        frame: the colour of a frame.
    """

    image: Image.Image
    width: float
    indent: float = 0.0
    heat: NDArray[np.floating] | None = None
    most: float = 1.0
    frame: str | None = None

    @property
    def height(self) -> float:
        return self.image.height * self.width / self.image.width

    def draw(self, figure: Figure, left: float, top: float) -> None:
        width, height = figure.get_size_inches()
        place = (left + self.indent) / width, (top - self.height) / height
        axes = figure.add_axes((*place, self.width / width, self.height / height))
        plain = print_size(self.image, self.width)
        if self.heat is None:
            axes.imshow(np.asarray(plain), aspect="auto", interpolation="lanczos")
        else:
            axes.imshow(np.asarray(plain.convert("L")), cmap="gray", vmin=0, vmax=255, aspect="auto")
            heat = upsample(self.heat, *plain.size)
            axes.imshow(heat, cmap=COLOR_MAP, vmin=0, vmax=self.most, alpha=_OPACITY, aspect="auto")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(visible=self.frame is not None, color=self.frame, linewidth=1.5)


def fitted(image: Image.Image, width: float, height: float, centred: bool = False, frame: str | None = None) -> Panel:
    """``image`` as large as ``width x height`` inches allow."""
    fit = min(width, height * image.width / image.height)
    return Panel(image, fit, (width - fit) / 2 if centred else 0.0, frame=frame)


@dataclass(frozen=True)
class Space:
    """Nothing, so high."""

    height: float

    def draw(self, figure: Figure, left: float, top: float) -> None:
        pass


@dataclass(frozen=True)
class Column:
    """Blocks one under another."""

    blocks: Sequence[Block]

    @property
    def height(self) -> float:
        return sum(block.height for block in self.blocks)

    def draw(self, figure: Figure, left: float, top: float) -> None:
        for block in self.blocks:
            block.draw(figure, left, top)
            top -= block.height


@dataclass(frozen=True)
class Row:
    """Blocks side by side, each ``step`` inches right of the one before."""

    blocks: Sequence[Block]
    step: float
    level_below: bool = False
    """Whether the lower edges are level, not the upper ones."""

    @property
    def height(self) -> float:
        return max((block.height for block in self.blocks), default=0.0)

    def draw(self, figure: Figure, left: float, top: float) -> None:
        for number, block in enumerate(self.blocks):
            block.draw(figure, left + number * self.step, top - self.level_below * (self.height - block.height))


@dataclass(frozen=True)
class Scale:
    """The colour bar of the attention on a page."""

    label: str
    most: float = 1.0
    ticks: Sequence[str] | None = None
    """The words at both ends, in place of numbers."""
    height: float = 0.5

    def draw(self, figure: Figure, left: float, top: float) -> None:  # noqa: ARG002
        total = figure.get_size_inches()[1]
        bar = figure.add_axes((0.3, (top - 0.16) / total, 0.4, 0.09 / total))
        colors, ends = ScalarMappable(Normalize(0, self.most), COLOR_MAP), [0, 1] if self.ticks else None
        figure.colorbar(colors, cax=bar, orientation="horizontal", extend="max", alpha=_OPACITY, ticks=ends)
        bar.set_xlabel(self.label, fontsize=SMALL_TEXT_SIZE, labelpad=2)
        if self.ticks:
            bar.set_xticklabels(self.ticks)


def cell_width(columns: int, gap: float) -> float:
    """Inches of each of ``columns`` columns of a page."""
    return (WIDTH - (columns - 1) * gap) / columns


def grid(upper: Sequence[Block], columns: int, gap: float, between: float, lower: Sequence[Block] = ()) -> Column:
    """Cells in rows of ``columns``, with ``gap`` inches between two columns and ``between`` inches between two rows.

    Args:
        upper: of each cell; the lower edges in a row are level.
        lower: what stands under each of them; the upper edges in a row are level.
    """
    step = cell_width(columns, gap) + gap
    rows: list[Block] = []
    for first in range(0, len(upper), columns):
        cells = slice(first, first + columns)
        rows += [Space(between)] if rows else []
        rows += [Row(upper[cells], step, level_below=bool(lower)), Row(lower[cells], step)]
    return Column(rows)


def page(*blocks: Block) -> Figure:
    """A page as high as its blocks."""
    content = Column(blocks)
    figure = new_figure(PAGE_WIDTH, content.height + 2 * MARGIN, layout=None)
    content.draw(figure, MARGIN, content.height + MARGIN)
    return figure


def print_size(image: Image.Image, width: float) -> Image.Image:
    """``image`` with no more pixels than ``width`` inches of print can show; never enlarged."""
    pixels = round(width * DPI)
    if image.width <= pixels:
        return image
    size = pixels, max(1, round(image.height * pixels / image.width))
    return image.resize(size, Image.Resampling.LANCZOS)


def upsample(weights: NDArray[np.floating], width: int, height: int) -> NDArray[np.float32]:
    """Attention (h, w) of each patch as attention (height, width) of each pixel of the image that the patches tile.

    Bilinear between the centres of the patches; beyond the outermost centres the value of the patch.
    """
    patches = Image.fromarray(np.ascontiguousarray(weights, dtype=np.float32))
    return np.asarray(patches.resize((width, height), Image.Resampling.BILINEAR), dtype=np.float32)
