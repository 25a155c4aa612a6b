"""Embedding in blocks, with progress."""

from collections.abc import Callable

import numpy as np

from vitcapr.progress import Tracker


def in_blocks(embed: Callable[[slice], np.ndarray], count: int, block: int, tracker: Tracker) -> np.ndarray:
    """The vectors (count, D) of ``count`` rows, ``block`` at a time.

    Args:
        embed: the vectors of a slice of the rows.
    """
    blocks = []
    for first in range(0, count, block):
        blocks.append(embed(slice(first, first + block)))
        tracker.advance(len(blocks[-1]))
    return np.concatenate(blocks)
