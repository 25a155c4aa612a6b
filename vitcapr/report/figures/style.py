"""The style of all figures: print sizes, colour-blind safe colours, reproducible bytes; fonts and the width of text.

Chinese, Japanese and Korean text needs a font that not every machine has.
"""

import functools
import importlib.util
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
import yaml
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from PIL import Image

from vitcapr.errors import UserError
from vitcapr.files import atomic_path
from vitcapr.progress import Reporter

COLUMN_WIDTH = 3.4
"""Inches: one column of a two-column page."""
PAGE_WIDTH = 7.0
"""Inches: both columns."""
_STYLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TEXT_SIZE, SMALL_TEXT_SIZE = _STYLE["font.size"], _STYLE["legend.fontsize"]
"""Points; nothing is set smaller, and figures are drawn at the size they are printed."""
LEGEND_ROW = 0.17
"""Inches that a row of a legend below the panels takes."""
_HANDLE = 6 * SMALL_TEXT_SIZE
"""Points beside the text of an entry of a legend: the piece of line and the space around it."""
DPI: int = _STYLE["savefig.dpi"]
"""Resolution of pictures inside figures, and of PNG files."""

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "#000000", "#882255", "#8A8F94", "#7A5230")
"""Okabe and Ito (2008), Color Universal Design; without its yellow, which is faint on white paper, and with wine, grey
and brown."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">")
"""One a series as well, for print without colour."""
INK, FAINT = _STYLE["text.color"], "#666666"
RIGHT, WRONG, FALSE = "#00735A", "#B34A00", "#D00000"
"""Colours of right and wrong words, of a contrast above 4.5 on white paper, and of the line under a wrong word."""

_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": "vitcapr", "Producer": None},
    "svg": {"Date": None, "Creator": "vitcapr"},
}

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

P = ParamSpec("P")
F = TypeVar("F", bound=Figure | list[Figure])


def _set_style() -> None:
    mpl.rcdefaults()
    mpl.rcParams.update({**_STYLE, "font.family": list(families())})


def new_figure(width: float, height: float, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """Return a blank figure of ``width x height`` inches, shown in no window, whose panels do not overlap."""
    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def styled(draw: Callable[P, F]) -> Callable[P, F]:
    """Make a drawing function draw in the house style, whatever the user's own matplotlib settings are."""

    @functools.wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> F:
        with mpl.rc_context():
            _set_style()
            drawn = draw(*args, **kwargs)
            for figure in drawn if isinstance(drawn, list) else [drawn]:
                # Automatic layouts and ticks are settled here, while the style still holds, and once for all formats.
                figure.draw_without_rendering()
                figure.set_layout_engine(None)
            return drawn

    return wrapped


def series(number: int) -> dict[str, Any]:
    """Colour and marker of line ``number``; after the last colour they go on with other combinations."""
    return {"color": SERIES[number % len(SERIES)], "marker": MARKERS[(number + number // len(SERIES)) % len(MARKERS)]}


def mark_level(axes: Axes, level: float, text: str, below: bool = False) -> None:
    """Draw a dotted line at ``level`` from left to right, and a text at its left end."""
    axes.axhline(level, color=FAINT, linewidth=0.8, linestyle=":")
    look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    axes.annotate(text, (0, level), xytext=(3, -9 if below else 3), fontsize=SMALL_TEXT_SIZE, **look)


def legend_columns(labels: Sequence[str]) -> int:
    """Return the number of legend entries that fit next to each other on a page."""
    widest = max(text_width(label, SMALL_TEXT_SIZE) for label in labels)
    return max(1, min(len(labels), int((PAGE_WIDTH - 0.2) * 72 / (widest + _HANDLE))))


def in_print(name: str) -> str:
    """Return a name of the configuration as a paper prints it."""
    return name.replace("_", " ")


Pages = Figure | Sequence[Figure]
"""One figure, or the pages of one: a PDF has them one after another, a PNG one under another."""


def save_figure(pages: Pages, path: Path) -> None:
    """Write a figure in the format of the path's ending, png, pdf or svg: the same figure gives the same bytes."""
    figures, kind = [pages] if isinstance(pages, Figure) else pages, path.suffix[1:]
    with atomic_path(path) as temporary:
        if len(figures) == 1:
            _save(figures[0], temporary, kind)
        elif kind == "pdf":
            with PdfPages(temporary, metadata=_METADATA["pdf"]) as whole:
                for figure in figures:
                    _save(figure, whole, kind)
        else:
            pictures = [np.asarray(Image.open(io.BytesIO(png_bytes(figure, DPI)))) for figure in figures]
            Image.fromarray(np.concatenate(pictures)).save(temporary, kind)


def png_bytes(figure: Figure, dpi: int) -> bytes:
    """Return a figure as PNG with ``dpi`` pixels an inch: the same figure gives the same bytes."""
    stream = io.BytesIO()
    _save(figure, stream, "png", dpi=dpi)
    return stream.getvalue()


def _save(figure: Figure, target: Path | IO[bytes] | PdfPages, format_: str, **options: Any) -> None:
    with mpl.rc_context():
        _set_style()
        figure.savefig(target, format=format_, metadata=_METADATA[format_], **options)


def save_pictures(drawn: Pages | Mapping[str, Pages], paths: Iterable[Path], report: Reporter) -> None:
    """Write a figure to every path in the format of its ending; of several, the one with the name of the path."""
    for path in paths:
        figures = drawn if isinstance(drawn, Mapping) else {path.stem: drawn}
        if path.stem not in figures or path.suffix[1:] not in _METADATA:
            raise UserError(
                "no figure of this name",
                where=path,
                remedy=f"name it {', '.join(figures)}, and end it in {', '.join(_METADATA)}",
            )
        save_figure(figures[path.stem], path)
        report.line(str(path))


@functools.cache
def families() -> tuple[str, ...]:
    """Return the fonts that figures are set in: the second one for what the first has no glyphs for."""
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
    """Yield the words of ``text``; one that is wider than ``width`` points in pieces that fit.

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
    """Return the number of letters of an overlong word on its first line, at least one."""
    count = 1
    while count < len(word) and text_width(word[: count + 1], size, weight) <= width:
        count += 1
    joint = max(word.rfind(sign, 0, count) for sign in "/-_")
    return joint + 1 if joint > 0 else count
