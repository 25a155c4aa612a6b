"""Retrieval failures: the wrong first match beside the positive, with scores and retrieval ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from PIL import Image

from vitcapr.report.figures.failures import Failure
from vitcapr.report.figures.pictures import fit, place_picture
from vitcapr.report.figures.style import (
    GREEN,
    INK,
    PAGE_WIDTH,
    SMALL_TEXT_SIZE,
    TEXT_SIZE,
    VERMILION,
    new_figure,
    styled,
)
from vitcapr.report.figures.wrapping import LINE_SPACING, wrap

COLUMNS = 2
_MARGIN, _GAP, _ROW_GAP, _BETWEEN = 0.06, 0.24, 0.18, 0.06  # inches
_CELL = (PAGE_WIDTH - 2 * _MARGIN - (COLUMNS - 1) * _GAP) / COLUMNS
_LINE = SMALL_TEXT_SIZE * LINE_SPACING / 72
_HEADER = TEXT_SIZE * LINE_SPACING / 72 + 0.1
_QUERY = 1.35  # inches: the square that the picture of a query fits
_BESIDE = 0.1
_HALF = (_CELL - _BESIDE) / 2
_TALLEST = 1.35


@dataclass(frozen=True)
class MissedImage:
    """A query image, its wrong first caption and the best of its own captions."""

    picture: Image.Image
    wrong: str
    true: str
    failure: Failure


@dataclass(frozen=True)
class MissedCaption:
    """A query caption, its wrong first picture and its own picture."""

    text: str
    wrong: Image.Image
    true: Image.Image
    failure: Failure


@dataclass(frozen=True)
class _Line:
    text: str
    weight: str = "normal"
    color: str = INK


@styled
def image_to_text(missed: Sequence[MissedImage], failed: int, queries: int) -> Figure:
    """Query pictures with their wrong first caption and the best of their own captions (the paper's figures 15 and 16).

    Args:
        failed: how many of the ``queries`` images fail, those not shown included.
    """
    width = (_CELL - _QUERY - _BESIDE) * 72
    texts = [
        [
            _wrong(case.failure),
            *_wrapped(case.wrong, width),
            _Line(""),
            _true(case.failure),
            *_wrapped(case.true, width),
        ]
        for case in missed
    ]
    sizes = [fit(case.picture, _QUERY, _QUERY) for case in missed]
    heights = [max(size[1], len(lines) * _LINE) for size, lines in zip(sizes, texts, strict=True)]
    figure, places = _sheet(heights, _title("image", "caption", len(missed), failed, queries))
    for case, lines, size, (left, top) in zip(missed, texts, sizes, places, strict=True):
        place_picture(figure, case.picture, left + (_QUERY - size[0]) / 2, top - size[1], size)
        _write(figure, lines, left + _QUERY + _BESIDE, top)
    return figure


@styled
def text_to_image(missed: Sequence[MissedCaption], failed: int, queries: int) -> Figure:
    """Query captions with their wrong first picture and their own picture: the opposite direction of figures 15 and 16.

    Args:
        failed: how many of the ``queries`` captions fail, those not shown included.
    """
    texts = [_wrapped(case.text, _CELL * 72) for case in missed]
    sizes = [[fit(picture, _HALF, _TALLEST) for picture in (case.wrong, case.true)] for case in missed]
    heights = [
        (len(lines) + 1) * _LINE + 2 * _BETWEEN + max(height for _, height in pair)
        for lines, pair in zip(texts, sizes, strict=True)
    ]
    figure, places = _sheet(heights, _title("caption", "image", len(missed), failed, queries))
    for case, lines, pair, (left, top) in zip(missed, texts, sizes, places, strict=True):
        _write(figure, lines, left, top)
        below = top - len(lines) * _LINE - _BETWEEN
        for side, (picture, heading) in enumerate(
            ((case.wrong, _wrong(case.failure)), (case.true, _true(case.failure)))
        ):
            start = left + side * (_HALF + _BESIDE)
            _write(figure, [heading], start, below)
            place_picture(figure, picture, start, below - _LINE - _BETWEEN - pair[side][1], pair[side])
    return figure


def _title(asked: str, found: str, shown: int, failed: int, queries: int) -> str:
    share = f"{failed:,} of {queries:,} {asked}s find a wrong {found} (✗) before a true one (✓)"
    return share if shown == failed else f"{share}; {shown} drawn at random"


def _wrong(failure: Failure) -> _Line:
    return _Line(f"✗ rank 1, cosine {failure.wrong_cosine:.2f}", "bold", VERMILION)


def _true(failure: Failure) -> _Line:
    return _Line(f"✓ rank {failure.rank:,}, cosine {failure.true_cosine:.2f}", "bold", GREEN)


def _wrapped(text: str, width: float) -> list[_Line]:
    return [_Line(part) for part in wrap(text, width, SMALL_TEXT_SIZE)]


def _sheet(heights: Sequence[float], title: str) -> tuple[Figure, list[tuple[float, float]]]:
    """A page with room for cases of ``heights`` inches, and the left and upper edge of each in inches."""
    rows = [heights[first : first + COLUMNS] for first in range(0, len(heights), COLUMNS)]
    total = 2 * _MARGIN + _HEADER + sum(max(row) for row in rows) + _ROW_GAP * max(0, len(rows) - 1)
    figure = new_figure(PAGE_WIDTH, total)
    figure.text(_MARGIN / PAGE_WIDTH, 1 - _MARGIN / total, title, fontsize=TEXT_SIZE, weight="bold", va="top")
    places, top = [], total - _MARGIN - _HEADER
    for row in rows:
        places += [(_MARGIN + column * (_CELL + _GAP), top) for column in range(len(row))]
        top -= max(row) + _ROW_GAP
    return figure, places


def _write(figure: Figure, lines: Sequence[_Line], left: float, top: float) -> None:
    width, height = figure.get_size_inches()
    for number, line in enumerate(lines):
        figure.text(
            left / width,
            (top - number * _LINE) / height,
            line.text,
            fontsize=SMALL_TEXT_SIZE,
            weight=line.weight,
            color=line.color,
            va="top",
        )
