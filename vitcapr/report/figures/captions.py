"""Sheets of images with captions: of several systems with a reference, or before and after reranking."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from PIL import Image

from vitcapr.formats.captions import DecodedCaption
from vitcapr.formats.manifest import Manifest
from vitcapr.report.figures.examples import choose, first_references, open_images, rows_of_split
from vitcapr.report.figures.layout import LINE, MARGIN, fit, place_picture, text_width, wrap, write
from vitcapr.report.figures.style import (
    BLUE,
    FAINT,
    INK,
    PAGE_WIDTH,
    SERIES,
    SMALL_TEXT_SIZE,
    VERMILION,
    new_figure,
    styled,
)

COLUMNS = 4
_GAP, _BETWEEN = 0.16, 0.05  # inches
_CELL = (PAGE_WIDTH - 2 * MARGIN - (COLUMNS - 1) * _GAP) / COLUMNS
_STRIKE, _UNDERLINE = 0.56, 1.14
"""Distance from the top of a word to the line through it or under it, in font sizes."""


@dataclass(frozen=True)
class Captioned:
    """An image, the caption by each model, and one reference."""

    picture: Image.Image
    captions: Sequence[str]
    reference: str


@dataclass(frozen=True)
class Reranked:
    """An image whose caption reranking changed: the words of both captions, their CIDEr (1.0 is 100), a reference."""

    picture: Image.Image
    before: tuple[str, ...]
    after: tuple[str, ...]
    scores: tuple[float, float]
    reference: str


@dataclass(frozen=True)
class _Text:
    """A word or a line at its place below the lower left corner of an image, in inches."""

    text: str
    drop: float
    left: float = 0.0
    color: str = INK
    bold: bool = False
    mark: float | None = None
    """Where a line goes through or under it, in font sizes below its top."""


@styled
def caption_sheet(examples: Sequence[Captioned], names: Sequence[str]) -> Figure:
    """Four images a row at the width of a page, as high as the captions need."""
    return _sheet([each.picture for each in examples], [_layout(each, names) for each in examples])


@styled
def reranked_sheet(examples: Sequence[Reranked], note: str) -> Figure:
    """Four images a row at the width of a page, as high as the captions need.

    Words that only the caption before has are struck through; those that only the caption after has are underlined.
    """
    heading = wrap(note, (PAGE_WIDTH - 2 * MARGIN) * 72, SMALL_TEXT_SIZE)
    return _sheet([each.picture for each in examples], [_layout_changes(each) for each in examples], heading)


def _sheet(pictures: Sequence[Image.Image], texts: Sequence[Sequence[_Text]], heading: Sequence[str] = ()) -> Figure:
    rows = [range(first, min(first + COLUMNS, len(pictures))) for first in range(0, len(pictures), COLUMNS)]
    sizes = [fit(picture, _CELL, _CELL) for picture in pictures]
    tallest = [max(sizes[i][1] for i in row) for row in rows]
    heights = [high + max(texts[i][-1].drop for i in row) + LINE for high, row in zip(tallest, rows, strict=True)]
    gaps = [_GAP if number or heading else 0.0 for number in range(len(rows))]
    total = 2 * MARGIN + len(heading) * LINE + sum(heights) + sum(gaps)
    figure = new_figure(PAGE_WIDTH, total)
    top = total - MARGIN
    for line in heading:
        write(figure, line, MARGIN, top)
        top -= LINE
    for row, picture_height, height, gap in zip(rows, tallest, heights, gaps, strict=True):
        top -= gap
        for column, i in enumerate(row):
            left = MARGIN + column * (_CELL + _GAP)
            place_picture(figure, pictures[i], left, top - picture_height, sizes[i])
            for each in texts[i]:
                _write(figure, each, left, top - picture_height)
        top -= height
    return figure


def _layout(example: Captioned, names: Sequence[str]) -> list[_Text]:
    # Flickr8k's captions have a space before a full stop.
    reference = re.sub(r"\s+([.,;:!?])", r"\1", example.reference)
    systems = [
        (name, caption, SERIES[n % len(SERIES)])
        for n, (name, caption) in enumerate(zip(names, example.captions, strict=True))
    ]
    lines: list[_Text] = []
    drop = _BETWEEN
    for name, caption, color in [*systems, ("reference", reference, FAINT)]:
        for bold, text in ((True, name), (False, caption or "(nothing)")):
            for part in wrap(text, _CELL * 72, SMALL_TEXT_SIZE, "bold" if bold else "normal"):
                lines.append(_Text(part, drop, color=color if bold else INK, bold=bold))
                drop += LINE
        drop += _BETWEEN
    return lines


def _layout_changes(example: Reranked) -> list[_Text]:
    gone, new = changes(example.before, example.after)
    words: list[_Text] = []
    drop = _BETWEEN
    for title, caption, marked, score, color, mark in (
        ("before", example.before, gone, example.scores[0], VERMILION, _STRIKE),
        ("after", example.after, new, example.scores[1], BLUE, _UNDERLINE),
    ):
        words.append(_Text(f"{title}, CIDEr {100 * score:.0f}", drop, color=color, bold=True))
        words += _flow(caption, marked, drop + LINE, color, mark)
        drop = words[-1].drop + LINE + _BETWEEN
    words.append(_Text("reference", drop, color=FAINT, bold=True))
    for part in wrap(example.reference, _CELL * 72, SMALL_TEXT_SIZE):
        drop += LINE
        words.append(_Text(part, drop))
    return words


def _flow(caption: Sequence[str], marked: Sequence[bool], drop: float, color: str, mark: float) -> list[_Text]:
    """The words of a caption one after another, in lines of the width of an image."""
    space = text_width("a b", SMALL_TEXT_SIZE) - text_width("ab", SMALL_TEXT_SIZE)
    left, words = 0.0, []
    for text, is_marked in zip(caption, marked, strict=True):
        width = text_width(text, SMALL_TEXT_SIZE)
        if left > 0 and left + width > _CELL * 72:
            left, drop = 0.0, drop + LINE
        plain = _Text(text, drop, left / 72)
        words.append(replace(plain, color=color, mark=mark) if is_marked else plain)
        left += width + space
    return words or [_Text("(nothing)", drop)]


def _write(figure: Figure, text: _Text, left: float, top: float) -> None:
    x, y = left + text.left, top - text.drop
    write(figure, text.text, x, y, color=text.color, bold=text.bold)
    if text.mark is not None:
        width, height = figure.get_size_inches()
        end = x + text_width(text.text, SMALL_TEXT_SIZE) / 72
        level = (y - text.mark * SMALL_TEXT_SIZE / 72) / height
        across = [x / width, end / width]
        figure.add_artist(Line2D(across, [level] * 2, color=text.color, linewidth=0.7, solid_capstyle="butt"))


def changes(before: Sequence[str], after: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """For each word of both captions, whether it is not part of the longest runs that they share."""
    gone, new = [True] * len(before), [True] * len(after)
    for start, other, size in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        gone[start : start + size] = new[other : other + size] = [False] * size
    return gone, new


def compare_captions(
    data: Manifest,
    split: str,
    language: str,
    before: Mapping[str, DecodedCaption],
    after: Mapping[str, DecodedCaption],
    score: Callable[[Sequence[str], Sequence[Mapping[str, str]]], Sequence[NDArray[np.floating]]],
    count: int,
    seed: int,
) -> tuple[list[Reranked], str]:
    """``count`` random images whose caption changed, and the note on them.

    Args:
        score: from image ids and the captions of two systems to the CIDEr of each caption.
    """
    rows = rows_of_split(data, split, {"the decoding": before, "the reranking": after})
    images = data.images["image_id"].iloc[rows].tolist()
    systems = [{image: captions[image].caption for image in images} for captions in (before, after)]
    old, new = score(images, systems)
    changed = [place for place, image in enumerate(images) if before[image].caption != after[image].caption]
    references = first_references(data, split, language)
    examples = []
    with open_images(data) as read:
        for place in choose(changed, count, seed):
            tokens = before[images[place]].tokens, after[images[place]].tokens
            scores = float(old[place]), float(new[place])
            examples.append(Reranked(read(rows[place]), *tokens, scores, str(references[rows[place]])))
    return examples, note_on_choice(len(rows), len(examples), (new - old)[changed], seed)


def note_on_choice(images: int, shown: int, differences: NDArray[np.floating], seed: int) -> str:
    """The note on the choice of the examples, and how often CIDEr rose and fell."""
    if not len(differences):
        return f"Reranking changed no caption of {images} images."
    rose, fell = (int(np.count_nonzero(way)) for way in (differences > 0, differences < 0))
    return (
        f"{shown} of the {len(differences)} images (of {images}) whose caption reranking changed, drawn at random with "
        f"seed {seed}. Among these {len(differences)}, CIDEr rose for {rose}, fell for {fell} and stayed for "
        f"{len(differences) - rose - fell}. Struck through: words that went; underlined: words that came."
    )
