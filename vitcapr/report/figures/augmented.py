"""Contact sheets of training pictures: each augmentation separately, and Base64."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from vitcapr.data.images import decode
from vitcapr.report.figures.style import FAINT, PAGE_WIDTH, SMALL_TEXT_SIZE, new_figure, styled

_GAP, _HEADING = 0.06, 0.2  # inches
_SHOWN = 640
"""Characters of Base64 that are shown."""


@dataclass(frozen=True)
class Encoded:
    """A picture and the beginning of its file in Base64.

    Attributes:
        picture: (H, W, 3) uint8.
        beginning: the first characters.
        file_bytes, characters: of the whole.
    """

    picture: np.ndarray
    beginning: str
    file_bytes: int
    characters: int


def encoded(content: bytes, max_pixels: int) -> Encoded:
    """A picture's file in Base64."""
    text = base64.b64encode(content).decode()
    return Encoded(np.asarray(decode(content, max_pixels)), text[:_SHOWN], len(content), len(text))


@styled
def augmentation_sheet(rows: Sequence[Sequence[np.ndarray]], names: Sequence[str]) -> Figure:
    """A row a picture, a column a change.

    Args:
        rows: pictures (S, S, 3) uint8, each row as many as there are names.
        names: the changes, the first of them none.
    """
    side = (PAGE_WIDTH - _GAP * (len(names) + 1)) / len(names)
    height = _HEADING + len(rows) * (side + _GAP) + _GAP
    figure = new_figure(PAGE_WIDTH, height)
    for line, pictures in enumerate(rows):
        for column, picture in enumerate(pictures):
            left = _GAP + column * (side + _GAP)
            bottom = height - _HEADING - (line + 1) * (side + _GAP)
            axes = figure.add_axes((left / PAGE_WIDTH, bottom / height, side / PAGE_WIDTH, side / height))
            axes.imshow(picture, aspect="auto")
            axes.set_axis_off()
            if line == 0:
                axes.set_title(names[column], fontsize=SMALL_TEXT_SIZE, pad=3)
    return figure


@styled
def encoding_sheet(example: Encoded) -> Figure:
    """A picture, the beginning of its Base64, and what that costs."""
    figure = new_figure(PAGE_WIDTH, 2.2)
    picture = figure.add_axes((0.01, 0.05, 0.3, 0.9))
    picture.imshow(example.picture)
    picture.set_axis_off()
    width = 64
    lines = [example.beginning[start : start + width] for start in range(0, len(example.beginning), width)]
    figure.text(0.34, 0.9, "\n".join([*lines, "..."]), family="monospace", fontsize=SMALL_TEXT_SIZE, va="top")
    raw = example.picture.size
    figure.text(
        0.34,
        0.08,
        f"file {example.file_bytes:,} bytes; Base64 {example.characters:,} characters, "
        f"{example.characters / example.file_bytes - 1:+.1%}; raw RGB {raw:,} bytes",
        fontsize=SMALL_TEXT_SIZE,
        color=FAINT,
    )
    return figure
