"""Fonts for figures. Chinese, Japanese and Korean text needs a font that not every machine has."""

import functools
import importlib.util
import logging
from pathlib import Path

from matplotlib import font_manager
from matplotlib.font_manager import FontProperties

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
