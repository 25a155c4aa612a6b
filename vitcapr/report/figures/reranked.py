"""Pictures with their captions before and after reranking; removed and added words are marked."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from PIL import Image

from vitcapr.report.figures.pictures import fit, place_picture
from vitcapr.report.figures.style import BLUE, FAINT, INK, PAGE_WIDTH, SMALL_TEXT_SIZE, VERMILION, new_figure, styled
from vitcapr.report.figures.wrapping import LINE_SPACING, text_width, wrap

COLUMNS = 4
_MARGIN, _GAP, _UNDER_PICTURE, _BETWEEN = 0.06, 0.16, 0.05, 0.05  # inches
_LINE = SMALL_TEXT_SIZE * LINE_SPACING / 72
_CELL = (PAGE_WIDTH - 2 * _MARGIN - (COLUMNS - 1) * _GAP) / COLUMNS
_STRIKE, _UNDERLINE = 0.56, 1.14
"""How far below the top of a word its line goes, in font sizes."""


@dataclass(frozen=True)
class Reranked:
    """A picture whose caption reranking changed.

    Attributes:
        picture: RGB, any size.
        before: the words of the caption as decoded.
        after: the words of the caption that reranking put first.
        scores: CIDEr of this image for both, 1.0 being 100.
        reference: one caption of the data set.
    """

    picture: Image.Image
    before: tuple[str, ...]
    after: tuple[str, ...]
    scores: tuple[float, float]
    reference: str


@dataclass(frozen=True)
class _Word:
    """A word, or a line of unmarked text, at its place below the left end of a picture, in inches."""

    text: str
    left: float
    drop: float
    color: str = INK
    bold: bool = False
    line: float | None = None
    """Where a line goes through or under it, in font sizes below its top."""


@styled
def reranked_sheet(examples: Sequence[Reranked], note: str) -> Figure:
    """Four pictures a row at the width of a page, as high as the captions need.

    Words that only the caption before has are struck through; those that only the caption after has are underlined.

    Args:
        note: how the examples were drawn, set above them; alone if there are none.
    """
    heading = wrap(note, (PAGE_WIDTH - 2 * _MARGIN) * 72, SMALL_TEXT_SIZE)
    texts = [_layout(example) for example in examples]
    rows = [range(first, min(first + COLUMNS, len(examples))) for first in range(0, len(examples), COLUMNS)]
    pictures = [max(fit(examples[i].picture, _CELL, _CELL)[1] for i in row) for row in rows]
    heights = [high + max(texts[i][-1].drop for i in row) + _LINE for high, row in zip(pictures, rows, strict=True)]
    total = 2 * _MARGIN + len(heading) * _LINE + sum(_GAP + height for height in heights)
    figure = new_figure(PAGE_WIDTH, total)
    top = total - _MARGIN
    for line in heading:
        _write(figure, _Word(line, 0, 0), _MARGIN, top)
        top -= _LINE
    for row, picture_height, height in zip(rows, pictures, heights, strict=True):
        top -= _GAP
        for column, i in enumerate(row):
            left = _MARGIN + column * (_CELL + _GAP)
            picture = examples[i].picture
            place_picture(figure, picture, left, top - picture_height, fit(picture, _CELL, _CELL))
            for word in texts[i]:
                _write(figure, word, left, top - picture_height)
        top -= height
    return figure


def note_on_choice(images: int, shown: int, differences: NDArray[np.floating], seed: int) -> str:
    """The note on the selection of the examples and on the number of captions with higher and lower CIDEr after
    reranking.

    Args:
        images: of the split.
        shown: as examples.
        differences: CIDEr after reranking less CIDEr before, of each image whose caption changed.
    """
    if not len(differences):
        return f"Reranking changed no caption of {images} images."
    rose, fell = (int(np.count_nonzero(way)) for way in (differences > 0, differences < 0))
    return (
        f"{shown} of the {len(differences)} images (of {images}) whose caption reranking changed, drawn at random with "
        f"seed {seed}. Among these {len(differences)}, CIDEr rose for {rose}, fell for {fell} and stayed for "
        f"{len(differences) - rose - fell}. Struck through: words that went; underlined: words that came."
    )


def changes(before: Sequence[str], after: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """For each word of both captions, whether it is not part of the longest runs that they share."""
    gone, new = [True] * len(before), [True] * len(after)
    for start, other, size in difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        gone[start : start + size] = new[other : other + size] = [False] * size
    return gone, new


def _layout(example: Reranked) -> list[_Word]:
    gone, new = changes(example.before, example.after)
    words: list[_Word] = []
    drop = _UNDER_PICTURE
    for title, caption, marked, score, color, line in (
        ("before", example.before, gone, example.scores[0], VERMILION, _STRIKE),
        ("after", example.after, new, example.scores[1], BLUE, _UNDERLINE),
    ):
        words.append(_Word(f"{title}, CIDEr {100 * score:.0f}", 0, drop, color, bold=True))
        drop += _LINE
        flowed = _flow(caption, marked, drop, color, line)
        words += flowed
        drop = flowed[-1].drop + _LINE + _BETWEEN
    words.append(_Word("reference", 0, drop, FAINT, bold=True))
    for part in wrap(example.reference, _CELL * 72, SMALL_TEXT_SIZE):
        drop += _LINE
        words.append(_Word(part, 0, drop))
    return words


def _flow(caption: Sequence[str], marked: Sequence[bool], drop: float, color: str, line: float) -> list[_Word]:
    """The words of a caption one after another, in lines of the width of a picture."""
    space = text_width("a b", SMALL_TEXT_SIZE) - text_width("ab", SMALL_TEXT_SIZE)
    left, words = 0.0, []
    for text, is_marked in zip(caption, marked, strict=True):
        width = text_width(text, SMALL_TEXT_SIZE)
        if left > 0 and left + width > _CELL * 72:
            left, drop = 0.0, drop + _LINE
        words.append(_Word(text, left / 72, drop, color, line=line) if is_marked else _Word(text, left / 72, drop))
        left += width + space
    return words or [_Word("(nothing)", 0, drop)]


def _write(figure: Figure, word: _Word, left: float, top: float) -> None:
    """Put a word at its place below ``top``, inches from the lower left corner of the page."""
    width, height = figure.get_size_inches()
    x, y = left + word.left, top - word.drop
    figure.text(
        x / width,
        y / height,
        word.text,
        fontsize=SMALL_TEXT_SIZE,
        weight="bold" if word.bold else "normal",
        color=word.color,
        va="top",
    )
    if word.line is not None:
        end = x + text_width(word.text, SMALL_TEXT_SIZE) / 72
        level = (y - word.line * SMALL_TEXT_SIZE / 72) / height
        across = [x / width, end / width]
        mark = Line2D(across, [level, level], color=word.color, linewidth=0.7, solid_capstyle="butt")
        figure.add_artist(mark)
