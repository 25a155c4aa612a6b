"""The first results of several models for one query, side by side, with positives marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from vitcapr.formats.embeddings import Embeddings
from vitcapr.report.figures.glyphs import printable
from vitcapr.report.figures.pictures import fit, place_picture
from vitcapr.report.figures.style import (
    FAINT,
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

DEPTH = 5
"""Matches shown, as in the tables 5 and 6 of the second paper."""
_MARGIN, _GAP, _BETWEEN = 0.06, 0.12, 0.05  # inches
_LINE = SMALL_TEXT_SIZE * LINE_SPACING / 72
_HEADING = TEXT_SIZE * LINE_SPACING / 72 + 0.04
_QUERY = 1.6  # inches: the width of a query's picture
_CELL = (PAGE_WIDTH - 2 * _MARGIN - (DEPTH - 1) * _BETWEEN) / DEPTH
_TALLEST = 1.0


@dataclass(frozen=True)
class Found:
    """A match: its picture or text, its cosine, and whether it is a positive."""

    shown: str | Image.Image
    cosine: float
    right: bool


Matches = tuple[NDArray[np.intp], NDArray[np.float32], NDArray[np.bool_]]
"""Positions, cosines, and whether each is a positive; nearest first."""


def first_captions(embedded: Embeddings, image: int) -> Matches:
    """Positions of the first captions of an image, their cosines, and whether they are its own."""
    scores = embedded.captions @ embedded.images[image]
    order = np.argsort(-scores, kind="stable")[:DEPTH]
    return order, scores[order], embedded.caption_image[order] == image


def first_images(embedded: Embeddings, caption: int) -> Matches:
    """Positions of the first images of a caption, their cosines, and whether they are its own."""
    scores = embedded.images @ embedded.captions[caption]
    order = np.argsort(-scores, kind="stable")[:DEPTH]
    return order, scores[order], order == embedded.caption_image[caption]


def found_table(title: str, query: str, found: Mapping[str, Sequence[Found]]) -> str:
    """The matches of each model in Markdown, which needs no font. What is shown of a match is its text."""
    lines = [
        f"**{title}**",
        "",
        f"Query: {query}",
        "",
        "| model | | cosine | | found |",
        "| --- | ---: | ---: | --- | --- |",
    ]
    for name, matches in found.items():
        for place, match in enumerate(matches, 1):
            mark, cell = "✓" if match.right else "✗", str(match.shown).replace("|", "\\|")
            lines.append(f"| {name} | {place} | {match.cosine:.2f} | {mark} | {cell} |")
    return "\n".join(lines) + "\n"


@styled
def captions_side_by_side(
    picture: Image.Image, references: Sequence[str], found: Mapping[str, Sequence[Found]], note: str
) -> Figure:
    """A picture with its own captions, and under each model the captions that it finds first.

    Args:
        references: the picture's own captions.
        found: by the model's name.
        note: how the query was chosen.
    """
    width = PAGE_WIDTH - 2 * _MARGIN - _QUERY - _GAP
    lines: list[tuple[str, str, str]] = [("its own captions", "bold", INK)]
    for text in references:
        lines += [(part, "normal", FAINT) for part in wrap(text, width * 72, SMALL_TEXT_SIZE)]
    for name, matches in found.items():
        lines += [("", "normal", INK), (name, "bold", INK)]
        for place, match in enumerate(matches, 1):
            mark, color = ("✓", GREEN) if match.right else ("✗", VERMILION)
            text = f"{place}. {mark} {match.cosine:.2f}  {printable(str(match.shown))}"
            lines += [(part, "normal", color) for part in wrap(text, width * 72, SMALL_TEXT_SIZE)]
    tall = _QUERY * picture.height / picture.width
    figure, top = _page(max(tall, len(lines) * _LINE), note)
    place_picture(figure, picture, _MARGIN, top - tall, (_QUERY, tall))
    for number, (text, weight, color) in enumerate(lines):
        _text(figure, text, _MARGIN + _QUERY + _GAP, top - number * _LINE, weight, color)
    return figure


@styled
def images_side_by_side(query: str, found: Mapping[str, Sequence[Found]], note: str) -> Figure:
    """A caption, and for each model a row of the pictures that it finds first."""
    asked = wrap(query, (PAGE_WIDTH - 2 * _MARGIN) * 72, TEXT_SIZE)
    row = _LINE + _BETWEEN + _TALLEST + _LINE + _GAP
    figure, top = _page(len(asked) * _HEADING + len(found) * row, note)
    for part in asked:
        _text(figure, part, _MARGIN, top, "bold", INK, TEXT_SIZE)
        top -= _HEADING
    for name, matches in found.items():
        _text(figure, name, _MARGIN, top, "bold", INK)
        for column, match in enumerate(matches):
            if not isinstance(match.shown, Image.Image):
                raise TypeError("a match of a caption is a picture")
            size = fit(match.shown, _CELL, _TALLEST)
            left = _MARGIN + column * (_CELL + _BETWEEN)
            under = top - _LINE - _BETWEEN
            mark, color = ("✓", GREEN) if match.right else ("✗", VERMILION)
            axes = place_picture(figure, match.shown, left, under - size[1], size)
            axes.set_axis_on()
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(visible=True, color=color, linewidth=1.5)
            _text(figure, f"{mark} {match.cosine:.2f}", left, under - _TALLEST - _BETWEEN, "bold", color)
        top -= row
    return figure


def _page(height: float, note: str) -> tuple[Figure, float]:
    """A page with the note at its head, and the top of what is ``height`` inches high under it."""
    lines = wrap(note, (PAGE_WIDTH - 2 * _MARGIN) * 72, SMALL_TEXT_SIZE)
    head = _HEADING + (len(lines) - 1) * _LINE
    figure = new_figure(PAGE_WIDTH, 2 * _MARGIN + head + height)
    for number, line in enumerate(lines):
        _text(figure, line, _MARGIN, _MARGIN + head + height - number * _LINE, "normal", FAINT)
    return figure, _MARGIN + height


def _text(
    figure: Figure, text: str, left: float, top: float, weight: str, color: str, size: float = SMALL_TEXT_SIZE
) -> None:
    width, height = figure.get_size_inches()
    figure.text(left / width, top / height, text, fontsize=size, weight=weight, color=color, va="top")
