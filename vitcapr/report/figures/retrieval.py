"""Retrieval failures: the wrong first match beside the positive, with scores and retrieval ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from vitcapr.report.direction import Direction, Show
from vitcapr.report.figures.layout import LINE, MARGIN, TEXT_LINE, fit, place_picture, wrap, write
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

COLUMNS = 2
_GAP, _ROW_GAP, _BETWEEN = 0.24, 0.18, 0.06  # inches
_CELL = (PAGE_WIDTH - 2 * MARGIN - (COLUMNS - 1) * _GAP) / COLUMNS
_HEADER = TEXT_LINE + 0.1
_QUERY = 1.35  # inches: the square that the image of a query fits
_BESIDE = 0.1
_HALF = (_CELL - _BESIDE) / 2

Query = TypeVar("Query")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Failure(Generic[Query, Answer]):
    """A query whose first match is a negative.

    Attributes:
        query: the image or the caption.
        wrong, true: the nearest negative and the nearest positive.
        wrong_cosine, true_cosine: of the query with either.
        rank: of the positive; at least 2.
    """

    query: Query
    wrong: Answer
    true: Answer
    wrong_cosine: float
    true_cosine: float
    rank: int


class _Line(NamedTuple):
    text: str
    color: str = INK
    bold: bool = False


def failures(
    direction: Direction,
    ranks: NDArray[np.integer],
    count: int,
    seed: int,
    show_query: Show[Query],
    show_answer: Show[Answer],
) -> list[Failure[Query, Answer]]:
    """``count`` random queries whose first match is a negative, in their order; all if there are fewer.

    Args:
        ranks: (Q,), of the nearest positive.
    """
    failed = np.random.default_rng(seed).permutation(np.flatnonzero(ranks > 1))[:count]
    cases = []
    for query in sorted(int(each) for each in failed):
        wrong, true = (direction.nearest(query, positive) for positive in (False, True))
        shown = show_query(query), show_answer(wrong.position), show_answer(true.position)
        cases.append(Failure(*shown, wrong.cosine, true.cosine, int(ranks[query])))
    return cases


@styled
def image_to_text(missed: Sequence[Failure[Image.Image, str]], failed: int, queries: int) -> Figure:
    """Query images with their wrong first caption and the best of their own captions (the paper's figures 15 and 16).

    Args:
        failed: how many of the ``queries`` images fail, those not shown included.
    """
    width = (_CELL - _QUERY - _BESIDE) * 72
    texts = [
        [_wrong(case), *_wrapped(case.wrong, width), _Line(""), _true(case), *_wrapped(case.true, width)]
        for case in missed
    ]
    sizes = [fit(case.query, _QUERY, _QUERY) for case in missed]
    heights = [max(size[1], len(lines) * LINE) for size, lines in zip(sizes, texts, strict=True)]
    figure, places = _sheet(heights, _title("image", "caption", len(missed), failed, queries))
    for case, lines, size, (left, top) in zip(missed, texts, sizes, places, strict=True):
        place_picture(figure, case.query, left + (_QUERY - size[0]) / 2, top - size[1], size)
        _write(figure, lines, left + _QUERY + _BESIDE, top)
    return figure


@styled
def text_to_image(missed: Sequence[Failure[str, Image.Image]], failed: int, queries: int) -> Figure:
    """Query captions with their wrong first image and their own image: the opposite direction of figures 15 and 16.

    Args:
        failed: how many of the ``queries`` captions fail, those not shown included.
    """
    texts = [_wrapped(case.query, _CELL * 72) for case in missed]
    sizes = [[fit(picture, _HALF, _QUERY) for picture in (case.wrong, case.true)] for case in missed]
    heights = [
        (len(lines) + 1) * LINE + 2 * _BETWEEN + max(height for _, height in pair)
        for lines, pair in zip(texts, sizes, strict=True)
    ]
    figure, places = _sheet(heights, _title("caption", "image", len(missed), failed, queries))
    for case, lines, pair, (left, top) in zip(missed, texts, sizes, places, strict=True):
        _write(figure, lines, left, top)
        below = top - len(lines) * LINE - _BETWEEN
        for side, (picture, heading) in enumerate(((case.wrong, _wrong(case)), (case.true, _true(case)))):
            start = left + side * (_HALF + _BESIDE)
            _write(figure, [heading], start, below)
            place_picture(figure, picture, start, below - LINE - _BETWEEN - pair[side][1], pair[side])
    return figure


def _title(asked: str, found: str, shown: int, failed: int, queries: int) -> str:
    share = f"{failed:,} of {queries:,} {asked}s find a wrong {found} (✗) before a true one (✓)"
    return share if shown == failed else f"{share}; {shown} drawn at random"


def _wrong(case: Failure[Query, Answer]) -> _Line:
    return _Line(f"✗ rank 1, cosine {case.wrong_cosine:.2f}", VERMILION, bold=True)


def _true(case: Failure[Query, Answer]) -> _Line:
    return _Line(f"✓ rank {case.rank:,}, cosine {case.true_cosine:.2f}", GREEN, bold=True)


def _wrapped(text: str, width: float) -> list[_Line]:
    return [_Line(part) for part in wrap(text, width, SMALL_TEXT_SIZE)]


def _sheet(heights: Sequence[float], title: str) -> tuple[Figure, list[tuple[float, float]]]:
    """A page with room for cases of ``heights`` inches, and the left and upper edge of each in inches."""
    rows = [heights[first : first + COLUMNS] for first in range(0, len(heights), COLUMNS)]
    total = 2 * MARGIN + _HEADER + sum(max(row) for row in rows) + _ROW_GAP * max(0, len(rows) - 1)
    figure = new_figure(PAGE_WIDTH, total)
    write(figure, title, MARGIN, total - MARGIN, bold=True, size=TEXT_SIZE)
    places, top = [], total - MARGIN - _HEADER
    for row in rows:
        places += [(MARGIN + column * (_CELL + _GAP), top) for column in range(len(row))]
        top -= max(row) + _ROW_GAP
    return figure, places


def _write(figure: Figure, lines: Sequence[_Line], left: float, top: float) -> None:
    for number, line in enumerate(lines):
        write(figure, line.text, left, top - number * LINE, color=line.color, bold=line.bold)
