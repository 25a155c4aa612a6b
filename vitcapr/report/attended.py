"""Attention as light on a photograph, in figures; ``attended.js`` draws the same light in pages.

One scale serves all words of a caption: light grows with the square root of attention, to the largest of the caption.
As in Xu et al. (2015), Show, Attend and Tell, the light is translucent, on the colour photograph, and smooth.
"""

from pathlib import Path
from typing import Any

import numpy as np
from contourpy import contour_generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Floats = NDArray[np.floating]
SCRIPT = Path(__file__).with_suffix(".js")
LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""A weight of attention is one of these characters: the share of the word's largest weight, from 0 to 1."""
DUSK = 0.5
"""The share of its light that a photograph loses where there is no attention."""
LEAST_SCALE = 3.0
"""A scale reaches at least this multiple of the even share, so that a captioner that looks everywhere does not seem to
look somewhere."""
FINE = 8
"""Samples of the smooth light along a patch."""


def encoded(weights: Floats) -> dict[str, Any]:
    """Encode attention (L, h, w) for a page.

    That is the grid, a string for each word, and the largest weight of each in multiples of the even share.
    """
    words, height, width = weights.shape
    flat = weights.reshape(words, -1).astype(np.float64)
    most = flat.max(axis=1, keepdims=True, initial=0)
    levels = np.rint(flat / np.where(most > 0, most, 1) * (len(LEVELS) - 1)).astype(np.intp)
    characters = np.array(list(LEVELS))
    return {
        "grid": [height, width],
        "weights": ["".join(characters[row]) for row in levels],
        "peaks": [round(float(value) * height * width, 2) for value in most[:, 0]],
    }


def full_light(multiples: Floats) -> float:
    """Return the multiple of the even share that is fully lit at every word of a caption: its largest, at least 3."""
    return max(LEAST_SCALE, float(multiples.max(initial=0)))


def smooth(weights: Floats) -> Floats:
    """Interpolate weights (h, w) to (8 h, 8 w), without overshoot; at the centre of a patch stands its weight."""
    height, width = weights.shape
    return _between(height) @ np.asarray(weights, np.float64) @ _between(width).T


def _between(patches: int) -> Floats:
    """Weights (8 n, n) of the two nearest patches for each sample; they change by Hermite's cubic."""
    at = (np.arange(FINE * patches) + 0.5) / FINE - 0.5
    first = np.floor(at).astype(int)
    share = (at - first) ** 2 * (3 - 2 * (at - first))
    rows, matrix = np.arange(len(at)), np.zeros((len(at), patches))
    np.add.at(matrix, (rows, first.clip(0, patches - 1)), 1 - share)
    np.add.at(matrix, (rows, (first + 1).clip(0, patches - 1)), share)
    return matrix


def half_level(light: Floats) -> float:
    """Return the level whose brighter samples together have half of the light."""
    falling = np.sort(light, axis=None)[::-1]
    total = np.cumsum(falling)
    return float(falling[min(np.searchsorted(total, total[-1] / 2), len(falling) - 1)])


def lit(image: Image.Image, multiples: Floats, full: float) -> Image.Image:
    """Draw the light of a word's attention (h, w), in multiples of the even share, on a photograph.

    Args:
        full: the multiple that is fully lit.

    Returns:
        A picture of the image's size; a line encloses half of the light.
    """
    light = smooth(multiples)
    shade = Image.fromarray((DUSK * (1 - np.sqrt(np.minimum(light / full, 1)))).astype(np.float32))
    dark = np.asarray(shade.resize(image.size, Image.Resampling.BILINEAR))[..., None]
    drawn = Image.fromarray(np.rint(np.asarray(image.convert("RGB")) * (1 - dark)).astype(np.uint8))
    scale = np.array(image.size) / light.shape[::-1]
    lines = contour_generator(z=light).lines(half_level(light)) if np.ptp(light) > 0 else []
    pen, width = ImageDraw.Draw(drawn), max(1, round(image.width / 160))
    for color, thickness in (("black", 3 * width), ("white", width)):
        for line in lines:
            pen.line([*map(tuple, (np.asarray(line) + 0.5) * scale)], fill=color, width=thickness)
    return drawn
