"""The style of all figures: print sizes, embedded fonts, colour-blind safe colours, reproducible bytes."""

import functools
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from PIL import Image

from vitcapr.errors import UserError
from vitcapr.files import atomic_path
from vitcapr.progress import Reporter
from vitcapr.report.figures.fonts import families, text_width

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
"""Of pictures inside figures, and of PNG files."""

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "#000000", "#882255", "#8A8F94", "#7A5230")
"""Okabe and Ito (2008), Color Universal Design; without its yellow, which is faint on white paper, and with wine, grey
and brown."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">")
"""One a series as well, for print without colour."""
INK, FAINT = _STYLE["text.color"], "#666666"
RIGHT, WRONG, FALSE = "#00735A", "#B34A00", "#D00000"
"""Of words, whose contrast with white paper is above 4.5: right and wrong, and the line under a wrong word."""

_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": "vitcapr", "Producer": None},
    "svg": {"Date": None, "Creator": "vitcapr"},
}

P = ParamSpec("P")
F = TypeVar("F", bound=Figure | list[Figure])


def _set_style() -> None:
    mpl.rcdefaults()
    mpl.rcParams.update({**_STYLE, "font.family": list(families())})


def new_figure(width: float, height: float, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """A blank figure of ``width x height`` inches that belongs to no window; its panels share it without overlap."""
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
    """A dotted line at ``level`` from left to right, and a text at its left end."""
    axes.axhline(level, color=FAINT, linewidth=0.8, linestyle=":")
    look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    axes.annotate(text, (0, level), xytext=(3, -9 if below else 3), fontsize=SMALL_TEXT_SIZE, **look)


def legend_columns(labels: Sequence[str]) -> int:
    """How many entries of a legend stand side by side on a page."""
    widest = max(text_width(label, SMALL_TEXT_SIZE) for label in labels)
    return max(1, min(len(labels), int((PAGE_WIDTH - 0.2) * 72 / (widest + _HANDLE))))


def in_print(name: str) -> str:
    """A name of the configuration as a paper prints it."""
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
    """A figure as PNG with ``dpi`` pixels an inch: the same figure gives the same bytes."""
    stream = io.BytesIO()
    _save(figure, stream, "png", dpi=dpi)
    return stream.getvalue()


def _save(figure: Figure, target: Path | IO[bytes] | PdfPages, format_: str, **options: Any) -> None:
    with mpl.rc_context():
        _set_style()
        figure.savefig(target, format=format_, metadata=_METADATA[format_], **options)


def save_pictures(figures: Mapping[str, Pages], paths: Iterable[Path], report: Reporter) -> None:
    """Write every path with the figure of its name, without the ending, in the format of its ending."""
    for path in paths:
        if path.stem not in figures or path.suffix[1:] not in _METADATA:
            raise UserError(
                "no figure of this name",
                where=path,
                remedy=f"name it {', '.join(figures)}, and end it in {', '.join(_METADATA)}",
            )
        save_figure(figures[path.stem], path)
        report.line(str(path))
