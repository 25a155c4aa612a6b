"""Orthogonal Procrustes: the rotation that brings images nearest to their texts.

Schönemann 1966: the R with R'R = I that minimises ``|X R - Y|`` is ``U V'`` of the singular value decomposition
``X'Y = U S V'``. X and Y are the features of the pairs, centred and divided by their lengths; the narrower ones get
columns of zeros, so that R is square. The score is the cosine of ``R'x`` and ``y``.
"""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import orthogonal_procrustes

from vitcapr.studies.alignment.interface import Alignment, Fitted, Float32s, Float64s, Pairs, unit


def fit_procrustes(train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:  # noqa: ARG001
    """The one rotation; there is nothing to choose."""
    yield Fitted({}, procrustes(train.image_of_text, train.texts))


def procrustes(images: Float32s, texts: Float32s) -> Alignment:
    """Rotate paired rows, (n, Di) and (n, Dt), onto each other."""
    width = max(images.shape[1], texts.shape[1])
    image_mean, text_mean = images.mean(0, dtype=np.float64), texts.mean(0, dtype=np.float64)

    def padded(rows: Float32s, mean: Float64s) -> Float64s:
        return np.pad(unit(rows - mean), ((0, 0), (0, width - len(mean))))

    rotation, _ = orthogonal_procrustes(padded(images, image_mean), padded(texts, text_mean))
    return Alignment(
        lambda rows: (padded(rows, image_mean) @ rotation).astype(np.float32),
        lambda rows: padded(rows, text_mean).astype(np.float32),
    )
