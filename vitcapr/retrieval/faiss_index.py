"""Approximate nearest neighbours of millions of points by faiss, from an index in a file.

The index is a hierarchical navigable small world graph (Malkov and Yashunin 2018) over the points themselves.
"""

from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import atomic_path

LINKS, BUILD_BREADTH, SEARCH_BREADTH = 32, 80, 256
"""Of each point in the graph; points considered at a time while it is built, and while it is searched."""


def write_faiss(path: Path, points: np.ndarray) -> None:
    """Build the index of the points, (N, E) float32 of unit length, and write it.

    Raises:
        UserError: faiss is not installed.
    """
    faiss = _faiss()
    index = faiss.IndexHNSWFlat(points.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = BUILD_BREADTH
    index.add(np.ascontiguousarray(points, np.float32))
    with atomic_path(path) as temporary:
        faiss.write_index(index, str(temporary))


def nearest_by_faiss(
    path: Path, queries: np.ndarray, k: int, rows: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """As :func:`vitcapr.retrieval.search.nearest`, from an index that :func:`write_faiss` wrote; may miss a point.

    Raises:
        UserError: faiss is not installed.
    """
    faiss = _faiss()
    index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    k = min(k, index.ntotal if rows is None else len(rows))
    options: dict[str, Any] = {"efSearch": max(SEARCH_BREADTH, k)}
    if rows is not None:
        options["sel"] = faiss.IDSelectorBatch(rows)
    found = index.search(np.ascontiguousarray(queries, np.float32), k, params=faiss.SearchParametersHNSW(**options))
    return found[0], found[1]


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        remedy = "pip install 'vitcapr[faiss]', or leave out --index faiss: the exact search finds the same"
        raise UserError("faiss is not installed", remedy=remedy) from error
    return faiss
