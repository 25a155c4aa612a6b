"""Similarity of two encoders before training, for the choice of an encoder or a layer.

Kornblith et al. 2019, Similarity of Neural Network Representations Revisited, with linear kernels and centred features
X (n, Dx) and Y (n, Dy) of the same n items:

    CKA(X, Y) = |X'Y|^2 / (|X'X| |Y'Y|)    (Frobenius norms)

Mutual kNN is that of Huh et al. 2024, The Platonic Representation Hypothesis. Gröger et al. 2025 choose the layers to
align by it. It is above 0 by chance. Gröger et al. 2026, Revisiting the Platonic Representation Hypothesis, calibrate
it by permutations of the pairs.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from vitcapr.extensions.alignment.closed_forms import Alignment, Float32s, Float64s, Pairs
from vitcapr.metrics.clip_score import unit

NEIGHBOURS = 10
_ITEMS = 5_000
"""Training images among which neighbours are looked for."""


PERMUTATIONS = 200
ALPHA = 0.05


def similarity(base: Pairs, held_out: Pairs) -> dict[str, float]:
    """Score a pair of encoders by training pairs and by pairs that were held out, one text an image.

    Returns:
        ``cka`` of the pairs; ``mutual_knn`` of up to 5,000 training images and their first texts; ``calibrated`` and
        ``p_value``, see :func:`calibrate`; ``matched``, the share of the held-out pairs whose text comes first by local
        CKA with the pairs as base.
    """
    first, first_of_base = (np.searchsorted(p.caption_image, np.arange(len(p.images))) for p in (held_out, base))
    texts = first_of_base[:_ITEMS]
    random = np.random.default_rng(0)
    orders = [np.arange(len(texts)), *(random.permutation(len(texts)) for _ in range(PERMUTATIONS))]
    mutual = mutual_neighbours(base.images[:_ITEMS], base.texts[texts], min(NEIGHBOURS, len(texts) - 1), orders)
    local = local_cka(base.image_of_text, base.texts)
    scores = local.images(held_out.images) @ local.texts(held_out.texts[first]).T
    matched = float(np.mean(scores.argmax(axis=1) == np.arange(len(scores))))
    calibrated, p_value, _ = calibrate(mutual[0], mutual[1:])
    measured = linear_cka(base.image_of_text, base.texts), float(mutual[0]), calibrated, p_value, matched
    return dict(zip(("cka", "mutual_knn", "calibrated", "p_value", "matched"), measured, strict=True))


def mutual_neighbours(x: Float32s, y: Float32s, k: int, orders: Iterable[npt.NDArray[np.int64]]) -> Float64s:
    """Return the mean share of common neighbours of an item in both spaces, for each order of the second.

    Neighbours are the k nearest items by cosine.

    Args:
        x, y: (n, Dx) and (n, Dy), features of the same items.
        orders: (n,) the row of y that is paired with each row of x; ``arange(n)`` are the true pairs.
    """
    near_x, near_y = (_nearest(rows, k) for rows in (x, y))
    are_near = np.zeros((len(y), len(y)), bool)
    np.put_along_axis(are_near, near_y, True, axis=1)
    return np.array([are_near[order[:, None], order[near_x]].mean() for order in orders])


def _nearest(rows: Float32s, k: int) -> npt.NDArray[np.int64]:
    """(n, k): the k nearest other rows of each row by cosine, in any order."""
    cosines = unit(rows) @ unit(rows).T
    np.fill_diagonal(cosines, -np.inf)
    return np.argpartition(-cosines, k - 1, axis=1)[:, :k].astype(np.int64)


def calibrate(similarity: float, permuted: Float64s) -> tuple[float, float, float]:
    """Calibrate a similarity of at most 1 by its values when the pairs are permuted (Gröger et al. 2026, algorithm 1).

    Returns:
        How far the similarity is from the threshold, of the way from there to 1, and 0 at or below it; the p-value,
        ``(1 + permutations at least as similar) / (1 + permutations)``; the threshold, the quantile 0.95 of the
        similarity and its permuted values.
    """
    ordered = np.sort(np.append(permuted, similarity))
    threshold = float(ordered[math.ceil((1 - ALPHA) * len(ordered)) - 1])
    p_value = (1 + np.count_nonzero(permuted >= similarity)) / len(ordered)
    return max(0.0, (similarity - threshold) / max(1 - threshold, 1e-12)), float(p_value), threshold


def linear_cka(x: Float32s, y: Float32s) -> float:
    """CKA of (n, Dx) and (n, Dy) features of the same items: between 0 and 1."""
    a, b = x - x.mean(0, dtype=np.float64), y - y.mean(0, dtype=np.float64)
    return float(_square(a.T @ b) / np.sqrt(_square(a.T @ a) * _square(b.T @ b)))


def local_cka(images: Float32s, texts: Float32s) -> Alignment:
    """Dot products are the local CKA with paired rows (n, Di) and (n, Dt) as the base; E is Dt + 2.

    Maniparambil et al. 2024, Do Vision and Language Encoders Represent the World Similarly?, match an image and a text
    by the CKA of the training pairs with this pair added. With centred base features, ``x`` and ``y`` less the base's
    means, and w = n/(n + 1), adding a pair adds ``w x y'`` to X'Y, so that

        local(x, y) = (|X'Y|^2 + 2 w x'(X'Y) y + w^2 |x|^2 |y|^2) / (|X'X + w x x'| |Y'Y + w y y'|)

    which is a dot product of a vector of the image and a vector of the text. The paper recomputes the kernels for each
    pair.
    """
    image_mean, text_mean = images.mean(0, dtype=np.float64), texts.mean(0, dtype=np.float64)
    x, y = images - image_mean, texts - text_mean
    between = x.T @ y
    norm, weight = np.sqrt(_square(between)), len(x) / (len(x) + 1)
    image_gram, text_gram = x.T @ x, y.T @ y

    def side(rows: Float64s, turned: Float64s, gram: Float64s, share: float) -> Float32s:
        squares = np.square(rows).sum(axis=1, keepdims=True)
        grown = _square(gram) + 2 * weight * ((rows @ gram) * rows).sum(1, keepdims=True) + weight**2 * squares**2
        parts = [np.full_like(squares, norm), share * turned, weight * squares]
        points: Float32s = (np.concatenate(parts, axis=1) / np.sqrt(grown)).astype(np.float32)
        return points

    def image_points(rows: Float32s) -> Float32s:
        centred = rows - image_mean
        return side(centred, centred @ between, image_gram, 2 * weight)

    def text_points(rows: Float32s) -> Float32s:
        centred = rows - text_mean
        return side(centred, centred, text_gram, 1.0)

    return Alignment(image_points, text_points)


def _square(matrix: npt.NDArray[Any]) -> float:
    return float(np.square(matrix).sum())
