"""Statistics of a store, by dask: moments, spectrum of the covariance, norms, near duplicates.

Every task reads a span of whole chunks, so any scheduler of dask runs them: threads, or the workers of a cluster that
see the same files.
"""

from collections.abc import Mapping
from typing import Any

import dask
import numpy as np

from vitcapr.errors import UserError
from vitcapr.formats.tables import Table, number, row
from vitcapr.store.reader import FeatureStore

_SPAN_BYTES = 32 << 20
_PAIR_ROWS = 2048
_MOST_COMPARED = 100_000
"""Rows that are compared with one another, all pairs; of a larger store, half as many that are drawn at random."""
_COMPONENTS = 64
"""Shares of the variance that are listed."""
_QUANTILES = (0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0)
_MAIN = (
    *("store", "array", "vectors", "dimensions", "mean", "variance", "dead dimensions", "median length"),
    *("components for 90 %", "components for 99 %", "first component, %"),
)


def statistics(store: FeatureStore, name: str, duplicates: int = 10) -> dict[str, Any]:
    """Return the statistics of one array, computed by the scheduler of dask that is set.

    Patches count as vectors of their own, and an image's mean patch stands for it among the duplicates.

    Args:
        duplicates: how many of the nearest pairs of rows are found; 0 saves the comparison of all with all.

    Returns:
        ``vectors``, ``dimensions``; ``mean``, ``variance`` (over all) and of each dimension; ``dead``: the dimensions
        that never change; ``explained``: the shares of the variance in the first 64 principal components;
        ``components_90``, ``components_99``: how many hold that share; ``norm``: quantiles of the lengths;
        ``nearest``: ``[id, id, cosine]`` of the most similar pairs; in a large store, among a sample of ``sampled``
        rows.

    Raises:
        UserError: a number is not finite.
    """
    array = store[name]
    width = array.shape[-1]
    shift = array[: min(len(array), 64)].reshape(-1, width).astype(np.float64).mean(axis=0)
    span = array.chunk * max(1, _SPAN_BYTES // (array.chunk * array.row_bytes))
    spans = [(first, min(first + span, len(array))) for first in range(0, len(array), span)]
    (parts,) = dask.compute([dask.delayed(_moments)(store, name, *rows, shift) for rows in spans])
    sums, squares, lows, highs, lengths = zip(*parts, strict=True)
    total, products, norms = sum(sums), sum(squares), np.concatenate(lengths)
    low, high, n = np.min(lows, axis=0), np.max(highs, axis=0), len(norms)
    mean = total / n + shift
    covariance = products / n - np.outer(total, total) / n**2
    variance = np.maximum(np.diag(covariance), 0)
    spectrum = np.maximum(np.linalg.eigvalsh(covariance)[::-1], 0)
    share = spectrum / spectrum.sum() if spectrum.sum() > 0 else spectrum
    result: dict[str, Any] = {
        "vectors": n,
        "dimensions": width,
        "mean": float(mean.mean()),
        "variance": float(variance.mean()),
        "mean_of_each": mean.tolist(),
        "variance_of_each": variance.tolist(),
        "dead": np.flatnonzero(low == high).tolist(),
        "explained": share[:_COMPONENTS].tolist(),
        "components_90": int(np.searchsorted(np.cumsum(share), 0.90) + 1),
        "components_99": int(np.searchsorted(np.cumsum(share), 0.99) + 1),
        "norm": {
            f"{level:g}": float(value) for level, value in zip(_QUANTILES, np.quantile(norms, _QUANTILES), strict=True)
        },
    }
    if duplicates:
        rows = np.arange(len(array))
        if len(array) > _MOST_COMPARED:
            rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_COMPARED // 2, replace=False))
            result["sampled"] = len(rows)
        pairs = _nearest(store, name, rows, duplicates)
        result["nearest"] = [[store.ids[a], store.ids[b], cosine] for a, b, cosine in pairs]
    return result


def statistics_tables(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Table]:
    """Return the main statistics, and the nearest pairs if there are any, of results by store and array."""
    each = [(store, name, values) for store, arrays in results.items() for name, values in arrays.items()]
    main = [
        row(
            *(store, name, number(values["vectors"], places=0), number(values["dimensions"], places=0)),
            *(number(values["mean"], places=4), number(values["variance"], places=4)),
            *(number(len(values["dead"]), places=0), number(values["norm"]["0.5"], places=3)),
            *(number(values["components_90"], places=0), number(values["components_99"], places=0)),
            number(values["explained"][0], scale=100),
        )
        for store, name, values in each
    ]
    nearest = [
        row(store, name, number(cosine, places=4), first, second)
        for store, name, values in each
        for first, second, cosine in values.get("nearest", [])
    ]
    tables = [Table("", _MAIN, tuple(main), align="ll" + "r" * (len(_MAIN) - 2), name="statistics")]
    if nearest:
        columns = ("store", "array", "cosine", "first", "second")
        sampled = [
            f"{store} {name}: among {values['sampled']:,} rows drawn at random"
            for store, name, values in each
            if "sampled" in values
        ]
        tables.append(Table("Nearest pairs", columns, tuple(nearest), "llrll", "; ".join(sampled), name="nearest"))
    return tables


def _moments(
    store: FeatureStore, name: str, first: int, last: int, shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return sum, products, least and largest of the dimensions of some rows, and the length of every vector.

    The first two are of the vectors minus ``shift``: (D,) and (D, D). Squares of numbers far from zero would cancel.
    """
    rows = store[name][first:last]
    finite = np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)
    if not finite.all():
        what = f"the numbers of '{store.ids[first + int(finite.argmin())]}' in '{name}' are not finite"
        raise UserError(what, where=store.manifest_path, remedy="extract or import these features again")
    vectors = rows.reshape(-1, rows.shape[-1]).astype(np.float64)
    low, high = vectors.min(axis=0), vectors.max(axis=0)
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    vectors -= shift
    return vectors.sum(axis=0), vectors.T @ vectors, low, high, lengths


def _nearest(store: FeatureStore, name: str, rows: np.ndarray, count: int) -> list[tuple[int, int, float]]:
    """Return the ``count`` most similar pairs of ``rows``, exactly: every block against itself and those after it.

    Each block is read once, not for every block that it is compared with.
    """
    parts = [rows[start : start + _PAIR_ROWS] for start in range(0, len(rows), _PAIR_ROWS)]
    blocks = [(part, dask.delayed(_unit)(store, name, part)) for part in parts]
    tasks = [dask.delayed(_pairs)(*a, *b, count) for at, a in enumerate(blocks) for b in blocks[at:]]
    (found,) = dask.compute(tasks)
    return _best([pair for pairs in found for pair in pairs], count)


def _pairs(
    a: np.ndarray, of_a: np.ndarray, b: np.ndarray, of_b: np.ndarray, count: int
) -> list[tuple[int, int, float]]:
    cosine = of_a @ of_b.T
    if a[0] == b[0]:
        cosine[np.tril_indices(len(cosine))] = -np.inf
    top = np.argpartition(cosine, -min(count, cosine.size), axis=None)[-min(count, cosine.size) :]
    rows, columns = np.unravel_index(top, cosine.shape)
    nearest = [(int(a[r]), int(b[c]), float(cosine[r, c])) for r, c in zip(rows, columns, strict=True)]
    return _best([pair for pair in nearest if np.isfinite(pair[2])], count)


def _best(pairs: list[tuple[int, int, float]], count: int) -> list[tuple[int, int, float]]:
    return sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))[:count]


def _unit(store: FeatureStore, name: str, rows: np.ndarray) -> np.ndarray:
    """(n, D) float32 of length 1: vectors, or the mean of each row's patches."""
    vectors = store[name].gather(rows).astype(np.float32)
    vectors = vectors.mean(axis=1) if vectors.ndim == 3 else vectors
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))
