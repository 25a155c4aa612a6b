"""Attention as pages show it: ``attended.js`` draws it over a picture, word by word."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCRIPT = Path(__file__).with_suffix(".js")
LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""A weight of attention is one of these characters: the share of the word's largest weight, from 0 to 1."""


def encoded(weights: NDArray[np.floating]) -> dict[str, Any]:
    """Encode attention (L, h, w): the grid, a string for each word, and the largest weight of each.

    Weights are multiples of an even spread.
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
