"""Text and images at places of a page, in inches from its lower left corner.

Lines are broken by measured text width, so that no text is clipped or overlaps.
"""

import functools
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from PIL import Image

from vitcapr.report.figures.fonts import families, printable
from vitcapr.report.figures.style import DPI, INK, PAGE_WIDTH, SMALL_TEXT_SIZE, TEXT_SIZE

LINE_SPACING = 1.25
"""Distance of two base lines in font sizes."""
LINE, TEXT_LINE = SMALL_TEXT_SIZE * LINE_SPACING / 72, TEXT_SIZE * LINE_SPACING / 72
"""Inches that a line takes, of small and of other text."""
MARGIN = 0.06
"""Inches around the content of a page."""
ELLIPSIS = "…"
_HANDLE = 6 * SMALL_TEXT_SIZE
"""Points beside the text of an entry of a legend: the piece of line and the space around it."""


@functools.lru_cache(maxsize=65536)
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Points that ``text`` takes in one line of the figures' fonts."""
    font = FontProperties(family=list(families()), size=size, weight=weight)
    width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def wrap(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """``text`` in lines of at most ``width`` points; a word wider than that is cut.

    It is cut after the last of ``/ - _`` that fits or, if it has none there, between letters. Where no font has its
    characters, a note to that effect stands for the text.
    """
    lines: list[str] = []
    line = ""
    for word in printable(text).split():
        longer = f"{line} {word}" if line else word
        if text_width(longer, size, weight) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        while text_width(word, size, weight) > width and len(word) > 1:
            cut = _cut(word, width, size, weight)
            lines.append(word[:cut])
            word = word[cut:]
        line = word
    return [*lines, line] if line else lines


def shorten(text: str, width: float, size: float, weight: str = "normal") -> str:
    """``text`` (or the note, as in :func:`wrap`), or as much as fits ``width`` points with an ellipsis after it."""
    text = printable(text)
    if text_width(text, size, weight) <= width:
        return text
    kept = text
    while kept and text_width(kept + ELLIPSIS, size, weight) > width:
        kept = kept[:-1]
    return kept + ELLIPSIS


def legend_columns(labels: Sequence[str]) -> int:
    """How many entries of a legend stand side by side on a page."""
    widest = max(text_width(label, SMALL_TEXT_SIZE) for label in labels)
    return max(1, min(len(labels), int((PAGE_WIDTH - 0.2) * 72 / (widest + _HANDLE))))


def _cut(word: str, width: float, size: float, weight: str) -> int:
    """How many letters of a word that is too wide go on the first line: at least one."""
    count = 1
    while count < len(word) and text_width(word[: count + 1], size, weight) <= width:
        count += 1
    joint = max(word.rfind(sign, 0, count) for sign in "/-_")
    return joint + 1 if joint > 0 else count


def write(
    figure: Figure,
    text: str,
    left: float,
    top: float,
    *,
    color: str = INK,
    bold: bool = False,
    size: float = SMALL_TEXT_SIZE,
    align: str = "left",
) -> None:
    """Write one line of text whose upper left corner (or upper middle) is at ``left, top``."""
    width, height = figure.get_size_inches()
    weight = "bold" if bold else "normal"
    figure.text(left / width, top / height, text, fontsize=size, weight=weight, color=color, va="top", ha=align)


def fit(picture: Image.Image, width: float, height: float) -> tuple[float, float]:
    """Width and height of the picture in inches: as large as ``width x height`` inches allow."""
    scale = min(width / picture.width, height / picture.height)
    return picture.width * scale, picture.height * scale


def print_size(picture: Image.Image, width: float) -> Image.Image:
    """``picture`` with no more pixels than ``width`` inches of print can show; never enlarged."""
    pixels = round(width * DPI)
    if picture.width <= pixels:
        return picture
    return picture.resize((pixels, max(1, round(picture.height * pixels / picture.width))), Image.Resampling.LANCZOS)


def add_axes(figure: Figure, left: float, bottom: float, size: tuple[float, float]) -> Axes:
    """Axes with their lower left corner at ``left, bottom``, without frame and ticks."""
    width, height = figure.get_size_inches()
    axes = figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))
    axes.set_axis_off()
    return axes


def place_picture(figure: Figure, picture: Image.Image, left: float, bottom: float, size: tuple[float, float]) -> Axes:
    """Draw the picture with its lower left corner at ``left, bottom``. Returns its axes."""
    axes = add_axes(figure, left, bottom, size)
    axes.imshow(np.asarray(print_size(picture, size[0])), aspect="auto", interpolation="lanczos")
    return axes
