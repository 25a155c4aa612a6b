"""Widths of text in print, and words that fit a width."""

import functools
from collections.abc import Iterator, Sequence

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from vitcapr.report.figures.fonts import families, printable
from vitcapr.report.figures.style import PAGE_WIDTH, SMALL_TEXT_SIZE

_HANDLE = 6 * SMALL_TEXT_SIZE
"""Points beside the text of an entry of a legend: the piece of line and the space around it."""


@functools.lru_cache(maxsize=65536)
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Points that ``text`` takes in one line of the figures' fonts."""
    font = FontProperties(family=list(families()), size=size, weight=weight)
    width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def split_words(text: str, width: float, size: float, weight: str = "normal") -> Iterator[str]:
    """The words of ``text``; one that is wider than ``width`` points in pieces that fit.

    It is cut after the last of ``/ - _`` that fits or, if it has none there, between letters. Where no font has its
    characters, a note to that effect stands for the text.
    """
    for word in printable(text).split():
        while text_width(word, size, weight) > width and len(word) > 1:
            cut = _cut(word, width, size, weight)
            yield word[:cut]
            word = word[cut:]
        yield word


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
