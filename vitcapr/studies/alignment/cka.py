"""Centred kernel alignment (CKA): how alike two encoders see the same items, and matching by it.

Kornblith et al. 2019, Similarity of Neural Network Representations Revisited, with linear kernels and centred features
X (n, Dx) and Y (n, Dy) of the same n items:

    CKA(X, Y) = |X'Y|^2 / (|X'X| |Y'Y|)    (Frobenius norms)

Maniparambil et al. 2024, Do Vision and Language Encoders Represent the World Similarly?, match an image and a text by
the local CKA: the CKA of the training pairs with this pair added. With centred base features, ``x`` and ``y`` less the
base's means, and w = n/(n + 1), adding a pair adds ``w x y'`` to X'Y, so that

    local(x, y) = (|X'Y|^2 + 2 w x'(X'Y) y + w^2 |x|^2 |y|^2) / (|X'X + w x x'| |Y'Y + w y y'|)

which is a dot product of a vector of the image and a vector of the text. The paper recomputes the kernels for each
pair.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from vitcapr.studies.alignment.interface import Alignment, Fitted, Float32s, Float64s, Pairs


def linear_cka(x: Float32s, y: Float32s) -> float:
    """CKA of (n, Dx) and (n, Dy) features of the same items: between 0 and 1."""
    a, b = x - x.mean(0, dtype=np.float64), y - y.mean(0, dtype=np.float64)
    return float(_square(a.T @ b) / np.sqrt(_square(a.T @ a) * _square(b.T @ b)))


def fit_local_cka(train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:  # noqa: ARG001
    """Matching by local CKA; there is nothing to choose."""
    yield Fitted({}, local_cka(train.image_of_text, train.texts))


def local_cka(images: Float32s, texts: Float32s) -> Alignment:
    """Dot products are the local CKA with paired rows (n, Di) and (n, Dt) as the base; E is Dt + 2."""
    image_mean, text_mean = images.mean(0, dtype=np.float64), texts.mean(0, dtype=np.float64)
    x, y = images - image_mean, texts - text_mean
    between = x.T @ y
    of_base, weight = np.sqrt(_square(between)), len(x) / (len(x) + 1)
    image_gram, text_gram = x.T @ x, y.T @ y

    def side(rows: Float64s, turned: Float64s, gram: Float64s, share: float) -> Float32s:
        squares = np.square(rows).sum(axis=1, keepdims=True)
        grown = _square(gram) + 2 * weight * ((rows @ gram) * rows).sum(1, keepdims=True) + weight**2 * squares**2
        parts = [np.full_like(squares, of_base), share * turned, weight * squares]
        points: Float32s = (np.concatenate(parts, axis=1) / np.sqrt(grown)).astype(np.float32)
        return points

    def of_images(rows: Float32s) -> Float32s:
        centred = rows - image_mean
        return side(centred, centred @ between, image_gram, 2 * weight)

    def of_texts(rows: Float32s) -> Float32s:
        centred = rows - text_mean
        return side(centred, centred, text_gram, 1.0)

    return Alignment(of_images, of_texts)


def _square(matrix: npt.NDArray[Any]) -> float:
    return float(np.square(matrix).sum())
