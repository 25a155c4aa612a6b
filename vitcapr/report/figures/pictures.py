"""Pictures on the page of a figure: their size in print, and where they stand."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from vitcapr.report.figures.style import DPI


def fit(picture: Image.Image, width: float, height: float) -> tuple[float, float]:
    """Width and height of the picture in inches: as large as ``width x height`` inches allow."""
    scale = min(width / picture.width, height / picture.height)
    return picture.width * scale, picture.height * scale


def print_size(picture: Image.Image, width: float) -> Image.Image:
    """``picture`` with no more pixels than ``width`` inches of print can show; never enlarged."""
    pixels = round(width * DPI)
    if picture.width <= pixels:
        return picture
    return picture.resize((pixels, max(1, round(picture.height * pixels / picture.width))), Image.Resampling.LANCZOS)


def place_picture(figure: Figure, picture: Image.Image, left: float, bottom: float, size: tuple[float, float]) -> Axes:
    """Draw the picture with its lower left corner at ``left, bottom``, without a frame. All lengths are in inches.

    Returns:
        Its axes, with the frame and the ticks switched off.
    """
    width, height = figure.get_size_inches()
    axes = figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))
    axes.imshow(np.asarray(print_size(picture, size[0])), aspect="auto", interpolation="lanczos")
    axes.set_axis_off()
    return axes
