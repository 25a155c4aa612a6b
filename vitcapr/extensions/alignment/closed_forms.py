"""Alignments in closed form: Procrustes, ridge regression, canonical correlations, and ASIF.

Closed forms take paired rows, images (n, Di) and texts (n, Dt): row i of one belongs to row i of the other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, orthogonal_procrustes, solve, solve_triangular, svd

from vitcapr.metrics.clip_score import unit

Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
Map = Callable[[Float32s], Float32s]
"""From features (n, D) to points (n, E) of the shared space."""
Setting = float | int | str

RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
CCA_RIDGES = (0.01, 0.1, 0.3, 1.0, 3.0)
POWERS = (0.0, 0.5, 1.0, 1.5)
SHARES = (0.25, 0.5, 1.0)
"""Shares of the canonical dimensions that CSA keeps."""
KEPT = (100, 800)
ASIF_POWERS = (1, 8)


@dataclass(frozen=True)
class Pairs:
    """Images and their captions, as the features of two frozen encoders.

    Attributes:
        images: (N, Di) float32, each image once.
        texts: (M, Dt) float32.
        caption_image: (M,) int64, the row in ``images`` of each caption's image; never decreasing, none left out.
    """

    images: Float32s
    texts: Float32s
    caption_image: npt.NDArray[np.int64]

    @property
    def image_of_text(self) -> Float32s:
        """(M, Di): the features of each caption's image."""
        return self.images[self.caption_image]


@dataclass(frozen=True)
class Alignment:
    """A fitted family. The score of an image and a text is the dot product of their points."""

    images: Map
    texts: Map


class Fitted(NamedTuple):
    """An alignment, and the settings that distinguish it from the others of its fit."""

    settings: dict[str, Setting]
    alignment: Alignment


Fit = Callable[[Pairs, Pairs, int], Iterator[Fitted]]
"""From training pairs, validation pairs and a seed to the candidates among which the validation pairs choose.

A closed form does not read the validation pairs; a trained head chooses its epoch by them.
"""


def closed_form(align: Callable[..., Alignment], **settings: tuple[float, ...]) -> Fit:
    """Yield the fits of a closed form of images and texts, for all combinations of its settings."""

    def fit(train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:  # noqa: ARG001
        for values in product(*settings.values()):
            chosen: dict[str, Setting] = dict(zip(settings, values, strict=True))
            yield Fitted(chosen, align(train.image_of_text, train.texts, **chosen))

    return fit


def procrustes(images: Float32s, texts: Float32s) -> Alignment:
    """Return the rotation that brings images nearest to their texts.

    Schönemann 1966: the R with R'R = I that minimises ``|X R - Y|`` is ``U V'`` of the singular value decomposition
    ``X'Y = U S V'``. X and Y are the features of the pairs, centred and divided by their lengths; the narrower ones get
    columns of zeros, so that R is square. The score is the cosine of ``R'x`` and ``y``.
    """
    width = max(images.shape[1], texts.shape[1])
    image_mean, text_mean = images.mean(0, dtype=np.float64), texts.mean(0, dtype=np.float64)

    def padded(rows: Float32s, mean: Float64s) -> Float64s:
        return np.pad(unit(rows - mean), ((0, 0), (0, width - len(mean))))

    rotation, _ = orthogonal_procrustes(padded(images, image_mean), padded(texts, text_mean))
    return Alignment(
        lambda rows: (padded(rows, image_mean) @ rotation).astype(np.float32),
        lambda rows: padded(rows, text_mean).astype(np.float32),
    )


def ridge_both_ways(images: Float32s, texts: Float32s, ridge: float) -> Alignment:
    """Texts predicted from images, and images from texts.

    Hoerl and Kennard 1970, with the centred features X and Y of the pairs and r the ``ridge``:

        W = inv(X'X + r tr(X'X)/Di I) X'Y,    V = inv(Y'Y + r tr(Y'Y)/Dt I) Y'X

    The score is the sum of two cosines: of ``W'x`` and ``y``, and of ``x`` and ``V'y``.
    """
    image_mean, text_mean = images.mean(0, dtype=np.float64), texts.mean(0, dtype=np.float64)
    x, y = images - image_mean, texts - text_mean
    to_text, to_image = coefficients(x, y, ridge), coefficients(y, x, ridge)

    def image_points(rows: Float32s) -> Float32s:
        centred = rows - image_mean
        return np.concatenate([unit(centred @ to_text), unit(centred)], axis=1).astype(np.float32)

    def text_points(rows: Float32s) -> Float32s:
        centred = rows - text_mean
        return np.concatenate([unit(centred), unit(centred @ to_image)], axis=1).astype(np.float32)

    return Alignment(image_points, text_points)


def coefficients(x: Float64s, y: Float64s, ridge: float) -> Float64s:
    """(Dx, Dy): what predicts the rows of ``y`` from those of ``x``, both centred."""
    result: Float64s = solve(_with_ridge(x.T @ x, ridge), x.T @ y, assume_a="pos")
    return result


class Canonical(NamedTuple):
    """The canonical directions of two views.

    Attributes:
        image_mean, text_mean: (Di,) and (Dt,).
        image_directions, text_directions: (Di, E) and (Dt, E), the best correlated first; E = min(Di, Dt).
        correlations: (E,), decreasing.
    """

    image_mean: Float64s
    text_mean: Float64s
    image_directions: Float64s
    text_directions: Float64s
    correlations: Float64s

    def image_variates(self, rows: Float32s) -> Float64s:
        """(n, E)."""
        return (rows - self.image_mean) @ self.image_directions

    def text_variates(self, rows: Float32s) -> Float64s:
        """(n, E)."""
        return (rows - self.text_mean) @ self.text_directions


def canonical(images: Float32s, texts: Float32s, ridge: float) -> Canonical:
    """Regularised canonical correlation analysis.

    CCA (Hotelling 1936) finds pairs of directions in which two views of the same items correlate most. With a ridge r
    on both covariances (Vinod 1976) and Cxx, Cyy, Cxy the covariances of the pairs:

        Kx Kx' = Cxx + r tr(Cxx)/Dx I,    Ky Ky' = Cyy + r tr(Cyy)/Dy I,    inv(Kx) Cxy inv(Ky') = U diag(rho) V'

    An image is mapped to ``a = U' inv(Kx) (x - mean)``, a text to ``b = V' inv(Ky) (y - mean)``; rho are the canonical
    correlations. With r above 0, fewer pairs than dimensions do.
    """
    x, y = images.astype(np.float64), texts.astype(np.float64)
    image_mean, text_mean = x.mean(0), y.mean(0)
    x -= image_mean
    y -= text_mean
    kx, ky = (cholesky(_with_ridge(rows.T @ rows / len(rows), ridge), lower=True) for rows in (x, y))
    whitened = solve_triangular(kx, solve_triangular(ky, y.T @ x / len(x), lower=True).T, lower=True)
    u, correlations, vt = svd(whitened, full_matrices=False)
    dx, dy = (solve_triangular(root, side, lower=True, trans="T") for root, side in ((kx, u), (ky, vt.T)))
    return Canonical(image_mean, text_mean, dx, dy, correlations)


def fit_cca(train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:  # noqa: ARG001
    """Yield the cosine in canonical space, for every ridge and power."""
    for ridge in CCA_RIDGES:
        space = canonical(train.image_of_text, train.texts, ridge)
        for power in POWERS:
            yield Fitted({"ridge": ridge, "power": power}, canonical_cosine(space, power))


def fit_csa(train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:  # noqa: ARG001
    """Yield the weighted cosine of CSA, for every ridge and number of dimensions."""
    for ridge in CCA_RIDGES:
        space = canonical(train.image_of_text, train.texts, ridge)
        for dimensions in sorted({max(1, round(share * len(space.correlations))) for share in SHARES}):
            yield Fitted({"ridge": ridge, "dimensions": dimensions}, weighted_cosine(space, dimensions))


def canonical_cosine(space: Canonical, power: float) -> Alignment:
    """Return the cosine of ``rho^p a`` and ``rho^p b``; p = 0 is the plain cosine.

    Gong et al. 2014, A Multi-View Embedding Space for Modeling Internet Images, Tags, and Their Semantics.
    """
    weight = space.correlations**power
    return Alignment(
        lambda rows: unit(space.image_variates(rows) * weight).astype(np.float32),
        lambda rows: unit(space.text_variates(rows) * weight).astype(np.float32),
    )


def weighted_cosine(space: Canonical, dimensions: int) -> Alignment:
    """``sum_i rho_i a_i b_i / (|a| |b|)`` over the first dimensions.

    Li et al. 2024, CSA: Data-efficient Mapping of Unimodal Features to Multimodal Features.
    """
    half = np.sqrt(space.correlations[:dimensions])
    return Alignment(
        lambda rows: (unit(space.image_variates(rows)[:, :dimensions]) * half).astype(np.float32),
        lambda rows: (unit(space.text_variates(rows)[:, :dimensions]) * half).astype(np.float32),
    )


def fit_asif(train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:  # noqa: ARG001
    """Yield a fit for every number of kept entries and every power."""
    for kept in sorted({min(kept, len(train.texts)) for kept in KEPT}):
        for power in ASIF_POWERS:
            yield Fitted({"kept": kept, "power": power}, asif(train.image_of_text, train.texts, kept, power))


def asif(images: Float32s, texts: Float32s, kept: int, power: int) -> Alignment:
    """Return an item is described by how near it is to the training pairs; E is n.

    Norelli et al. 2022, ASIF: Coupled Data Turns Unimodal Models to Multimodal Without Training, algorithm 1. With
    (x_1, y_1) to (x_n, y_n) the features of the training pairs, of length 1:

        a_i = cos(x, x_i) for an image,    b_i = cos(y, y_i) for a text

    Of each vector the k largest entries are kept and raised to the power p, the others are 0. The score is the cosine
    of a and b.
    """
    return Alignment(
        partial(relative, anchors=images, kept=kept, power=power),
        partial(relative, anchors=texts, kept=kept, power=power),
    )


def relative(rows: Float32s, anchors: Float32s, kept: int, power: int) -> Float32s:
    """Return the relative representation of rows (m, D): (m, n), of length 1.

    Entries below 0 count as 0. Of entries equal to the k-th largest, all are kept.
    """
    near: Float32s = np.matmul(unit(rows), unit(anchors).T)
    np.maximum(near, 0, out=near)
    least = np.partition(near, len(anchors) - kept, axis=1)[:, len(anchors) - kept, None]
    near[near < least] = 0
    near **= power
    return unit(near)


def _with_ridge(gram: Float64s, ridge: float) -> Float64s:
    """``gram`` plus the ridge, which is in units of its mean diagonal entry."""
    gram[np.diag_indices_from(gram)] += ridge * np.trace(gram) / len(gram)
    return gram
