"""Nearest neighbours by cosine, block by block."""

import numpy as np

BLOCK = 65_536
"""Points compared at a time."""


def nearest(
    queries: np.ndarray, points: np.ndarray, k: int, rows: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``k`` points nearest to each query; ``points`` may be a memory map that is larger than the memory.

    Args:
        queries: (Q, E) float32 of unit length.
        points: (N, E) float32 of unit length.
        rows: search only these rows of ``points``, in increasing order; None for all.

    Returns:
        Cosines (Q, k) float32, falling, and the rows in ``points`` (Q, k) int64; of equal ones the first comes first.
        Fewer than k where there are fewer points.
    """
    rows = np.arange(len(points)) if rows is None else rows
    scores = np.empty((len(queries), 0), np.float32)
    neighbours = np.empty((len(queries), 0), np.int64)
    for first in range(0, len(rows), BLOCK):
        block = rows[first : first + BLOCK]
        scores = np.concatenate([scores, queries @ points[block].T], axis=1)
        neighbours = np.concatenate([neighbours, np.broadcast_to(block, (len(scores), len(block)))], axis=1)
        # Stable, and earlier points stand before later ones: of equally near points the first is taken.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores, neighbours = np.take_along_axis(scores, order, axis=1), np.take_along_axis(neighbours, order, axis=1)
    return scores, neighbours
