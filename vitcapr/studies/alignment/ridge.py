"""Ridge regression both ways: texts predicted from images, and images from texts.

Hoerl and Kennard 1970, with the centred features X (n, Di) and Y (n, Dt) of the pairs:

    W = inv(X'X + r tr(X'X)/Di I) X'Y,    V = inv(Y'Y + r tr(Y'Y)/Dt I) Y'X

The score is the sum of two cosines: of ``W'x`` and ``y``, and of ``x`` and ``V'y``.
"""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import solve

from vitcapr.studies.alignment.interface import Alignment, Fitted, Float32s, Float64s, Pairs, unit

RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def fit_ridge(train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:  # noqa: ARG001
    """The regressions of both ways, for every ridge."""
    for ridge in RIDGES:
        yield Fitted({"ridge": ridge}, ridge_both_ways(train.image_of_text, train.texts, ridge))


def ridge_both_ways(images: Float32s, texts: Float32s, ridge: float) -> Alignment:
    """Regress paired rows, (n, Di) and (n, Dt), on each other; ``ridge`` is r."""
    image_mean, text_mean = images.mean(0, dtype=np.float64), texts.mean(0, dtype=np.float64)
    x, y = images - image_mean, texts - text_mean
    to_text, to_image = coefficients(x, y, ridge), coefficients(y, x, ridge)

    def of_images(rows: Float32s) -> Float32s:
        centred = rows - image_mean
        return np.concatenate([unit(centred @ to_text), unit(centred)], axis=1).astype(np.float32)

    def of_texts(rows: Float32s) -> Float32s:
        centred = rows - text_mean
        return np.concatenate([unit(centred), unit(centred @ to_image)], axis=1).astype(np.float32)

    return Alignment(of_images, of_texts)


def coefficients(x: Float64s, y: Float64s, ridge: float) -> Float64s:
    """(Dx, Dy): what predicts the rows of ``y`` from those of ``x``, both centred."""
    gram = x.T @ x
    gram[np.diag_indices_from(gram)] += ridge * np.trace(gram) / len(gram)
    found: Float64s = solve(gram, x.T @ y, assume_a="pos")
    return found
