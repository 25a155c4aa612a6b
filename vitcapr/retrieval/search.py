"""Nearest neighbours by cosine: exact, block by block, or approximate by faiss from an index in a file.

The index is a hierarchical navigable small world graph (Malkov and Yashunin 2018) over the points themselves.
"""

from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import atomic_path

BLOCK = 65_536
"""Points compared at a time."""
LINKS, BUILD_BREADTH, SEARCH_BREADTH = 32, 80, 256
"""faiss: links of each point in the graph; points considered while it is built, and while it is searched."""


def nearest(
    queries: np.ndarray, points: np.ndarray, k: int, rows: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` points nearest to each query; ``points`` may be a memory map that is larger than the memory.

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


def write_faiss(path: Path, points: np.ndarray) -> None:
    """Build the index of the points, (N, E) float32 of unit length, and write it."""
    faiss = _faiss()
    index = faiss.IndexHNSWFlat(points.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = BUILD_BREADTH
    index.add(np.ascontiguousarray(points, np.float32))
    with atomic_path(path) as temporary:
        faiss.write_index(index, str(temporary))


def nearest_by_faiss(path: Path, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """As :func:`nearest` of all points, from an index that :func:`write_faiss` wrote; may miss a point."""
    faiss = _faiss()
    index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    k = min(k, index.ntotal)
    breadth = faiss.SearchParametersHNSW(efSearch=max(SEARCH_BREADTH, k))
    scores, neighbours = index.search(np.ascontiguousarray(queries, np.float32), k, params=breadth)
    return scores, neighbours


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        remedy = "pip install 'vitcapr[faiss]', or leave out --index faiss: the exact search finds the same"
        raise UserError("faiss is not installed", remedy=remedy) from error
    return faiss
