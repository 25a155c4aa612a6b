"""Fonts for figures, the width of text in them, and words that fit a width.

Chinese, Japanese and Korean text needs a font that not every machine has.
"""

import functools
import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path

from matplotlib import font_manager
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

LATIN = "DejaVu Sans"
"""Comes with matplotlib, so that figures are the same everywhere."""
CJK = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Arial Unicode MS",
)
"""By preference; the first that is installed is taken."""
PACKAGED = ("mplfonts", "fonts/NotoSansCJKsc-Regular.otf")
"""The package of ``pip install "vitcapr[chinese]"`` and the font in it, Noto Sans CJK SC."""
NO_FONT = "(no font for this text)"

_log = logging.getLogger(__name__)
# The Chinese font has one weight, and matplotlib would say so of every text in bold.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)


@functools.cache
def families() -> tuple[str, ...]:
    """The fonts that figures are set in: the second one for what the first has no glyphs for."""
    fonts = _installed()
    if not fonts and (spec := importlib.util.find_spec(PACKAGED[0])) is not None:
        font_manager.fontManager.addfont(Path(str(spec.origin)).parent / PACKAGED[1])
        fonts = _installed()
    return (LATIN, *fonts[:1])


def _installed() -> list[str]:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in CJK if name in installed]


@functools.cache
def _characters() -> frozenset[int]:
    fonts = [font_manager.get_font(font_manager.findfont(FontProperties(family=name))) for name in families()]
    return frozenset(code for font in fonts for code in font.get_charmap())


def printable(text: str) -> str:
    """``text``, or a note in its place where no font here has all its characters; the first time, a warning too."""
    if all(ord(character) in _characters() or character.isspace() for character in text):
        return text
    _warn()
    return NO_FONT


@functools.cache
def _warn() -> None:
    _log.warning(
        "warning: no font on this machine has all characters of the texts, which are left out of the figures; "
        'pip install "vitcapr[chinese]", or install one of %s',
        ", ".join(CJK[:3]),
    )


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


def _cut(word: str, width: float, size: float, weight: str) -> int:
    """How many letters of a word that is too wide go on the first line: at least one."""
    count = 1
    while count < len(word) and text_width(word[: count + 1], size, weight) <= width:
        count += 1
    joint = max(word.rfind(sign, 0, count) for sign in "/-_")
    return joint + 1 if joint > 0 else count
