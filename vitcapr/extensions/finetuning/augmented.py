"""Sheets of training images: each augmentation separately, and Base64."""

import base64
import io
import textwrap
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from vitcapr.report.figures.page_layout import (
    Word,
    cell_width,
    column,
    grid,
    lines_of_text,
    page,
    paragraph,
    picture,
    row,
)
from vitcapr.report.figures.style import FAINT, styled

_GAP = 0.06  # inches
_CHARACTERS, _LINE = 640, 64
"""Characters of Base64 that are printed, and those of a line."""


@styled
def augmentation_sheet(changes: Mapping[str, np.ndarray]) -> Figure:
    """Return a row for each image and a column for each change: (B, S, S, 3) uint8 by the name of the change."""
    width = cell_width(len(changes), _GAP)
    names = row([paragraph(name, width) for name in changes], width + _GAP)
    images = (Image.fromarray(image) for images in zip(*changes.values(), strict=True) for image in images)
    cells = [picture(image, width, width) for image in images]
    return page(names, grid(cells, len(changes), _GAP, _GAP))


@styled
def encoding_sheet(content: bytes) -> Figure:
    """Return the image of a file, the beginning of the file in Base64, and the sizes of both."""
    image, text = Image.open(io.BytesIO(content)).convert("RGB"), base64.b64encode(content).decode()
    lines = [*textwrap.wrap(text[:_CHARACTERS], _LINE), "..."]
    cost = (
        f"file {len(content):,} bytes; Base64 {len(text):,} characters, {len(text) / len(content) - 1:+.1%}; "
        f"raw RGB {3 * image.width * image.height:,} bytes"
    )
    base64_text = lines_of_text([[Word(line)] for line in lines], family="monospace")
    return page(row([picture(image, 2.1, 2.1), column(base64_text, paragraph(cost, 4.6, FAINT))], 2.3))
