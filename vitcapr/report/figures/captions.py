"""A sheet of pictures with generated captions and one reference caption."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from PIL import Image

from vitcapr.report.figures.pictures import fit, place_picture
from vitcapr.report.figures.style import FAINT, INK, PAGE_WIDTH, SERIES, SMALL_TEXT_SIZE, new_figure, styled
from vitcapr.report.figures.wrapping import LINE_SPACING, wrap

COLUMNS = 4
_MARGIN, _GAP, _UNDER_PICTURE, _BETWEEN_CAPTIONS = 0.06, 0.16, 0.05, 0.05  # inches
_LINE = SMALL_TEXT_SIZE * LINE_SPACING / 72
_REFERENCE = "reference"


@dataclass(frozen=True)
class Captioned:
    """A picture and its captions.

    Attributes:
        picture: RGB, any size.
        captions: the caption by each model, in the order of the models' names.
        reference: one caption of the data set.
    """

    picture: Image.Image
    captions: Sequence[str]
    reference: str


@dataclass(frozen=True)
class _Line:
    text: str
    heading: bool
    color: str
    drop: float
    """Inches below the picture, to the top of the line."""


@styled
def caption_sheet(examples: Sequence[Captioned], names: Sequence[str]) -> Figure:
    """Four pictures a row at the width of a page, as high as the captions need.

    Args:
        names: the model and decoding behind each caption of an example.
    """
    cell = (PAGE_WIDTH - 2 * _MARGIN - (COLUMNS - 1) * _GAP) / COLUMNS
    texts = [_layout(example, names, cell * 72) for example in examples]
    rows = [range(first, min(first + COLUMNS, len(examples))) for first in range(0, len(examples), COLUMNS)]
    pictures = [max(fit(examples[i].picture, cell, cell)[1] for i in row) for row in rows]
    heights = [
        picture + max(texts[i][-1].drop + _LINE for i in row) for picture, row in zip(pictures, rows, strict=True)
    ]
    total = 2 * _MARGIN + sum(heights) + _GAP * (len(rows) - 1)
    figure = new_figure(PAGE_WIDTH, total)
    top = total - _MARGIN
    for row, picture_height, height in zip(rows, pictures, heights, strict=True):
        for column, i in enumerate(row):
            left = _MARGIN + column * (cell + _GAP)
            picture = examples[i].picture
            place_picture(figure, picture, left, top - picture_height, fit(picture, cell, cell))
            for line in texts[i]:
                figure.text(
                    left / PAGE_WIDTH,
                    (top - picture_height - line.drop) / total,
                    line.text,
                    fontsize=SMALL_TEXT_SIZE,
                    weight="bold" if line.heading else "normal",
                    color=line.color,
                    va="top",
                )
        top -= height + _GAP
    return figure


def _layout(example: Captioned, names: Sequence[str], width: float) -> list[_Line]:
    lines: list[_Line] = []
    drop = _UNDER_PICTURE
    written = [*zip(names, example.captions, strict=True), (_REFERENCE, _joined(example.reference))]
    for number, (name, caption) in enumerate(written):
        color = FAINT if name is _REFERENCE else SERIES[number % len(SERIES)]
        for heading, text in ((True, name), (False, caption or "(nothing)")):
            for part in wrap(text, width, SMALL_TEXT_SIZE, "bold" if heading else "normal"):
                lines.append(_Line(part, heading, color if heading else INK, drop))
                drop += _LINE
        drop += _BETWEEN_CAPTIONS
    return lines


def _joined(text: str) -> str:
    """``text`` without the space that Flickr8k's captions have before a full stop."""
    return re.sub(r"\s+([.,;:!?])", r"\1", text)
