"""Regularised canonical correlation analysis in closed form, and two ways to weight the canonical dimensions.

CCA (Hotelling 1936) finds pairs of directions in which two views of the same items correlate most. With a ridge on both
covariances (Vinod 1976) and Cxx, Cyy, Cxy the covariances of the pairs:

    Kx Kx' = Cxx + r tr(Cxx)/Dx I,    Ky Ky' = Cyy + r tr(Cyy)/Dy I,    inv(Kx) Cxy inv(Ky') = U diag(rho) V'

An image is mapped to ``a = U' inv(Kx) (x - mean)``, a text to ``b = V' inv(Ky) (y - mean)``; rho are the canonical
correlations. Two scores are made of these:

* ``cca``: the cosine of ``rho^p a`` and ``rho^p b`` (Gong et al. 2014, A Multi-View Embedding Space for Modeling
  Internet Images, Tags, and Their Semantics); p = 0 is the plain cosine.
* ``csa``: ``sum_i rho_i a_i b_i / (|a| |b|)`` over the first s dimensions (Li et al. 2024, CSA: Data-efficient Mapping
  of Unimodal Features to Multimodal Features).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular, svd

from vitcapr.studies.alignment.interface import Alignment, Fitted, Float32s, Float64s, Pairs, unit

RIDGES = (0.01, 0.1, 0.3, 1.0, 3.0)
POWERS = (0.0, 0.5, 1.0, 1.5)
SHARES = (0.25, 0.5, 1.0)
"""Of the canonical dimensions, those that CSA keeps."""


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
    """CCA of paired rows.

    Args:
        images, texts: (n, Di) and (n, Dt); row i of one belongs to row i of the other.
        ridge: r, in units of the mean variance of a dimension; above 0, so that fewer pairs than dimensions do.
    """
    x, y = images.astype(np.float64), texts.astype(np.float64)
    image_mean, text_mean = x.mean(0), y.mean(0)
    x -= image_mean
    y -= text_mean
    kx, ky = _root(x, ridge), _root(y, ridge)
    whitened = solve_triangular(kx, solve_triangular(ky, y.T @ x / len(x), lower=True).T, lower=True)
    u, correlations, vt = svd(whitened, full_matrices=False)
    of_images, of_texts = (solve_triangular(root, side, lower=True, trans="T") for root, side in ((kx, u), (ky, vt.T)))
    return Canonical(image_mean, text_mean, of_images, of_texts, correlations)


def fit_cca(train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:  # noqa: ARG001
    """The cosine in canonical space, for every ridge and power."""
    for ridge in RIDGES:
        found = canonical(train.image_of_text, train.texts, ridge)
        for power in POWERS:
            yield Fitted({"ridge": ridge, "power": power}, cosine_of(found, power))


def fit_csa(train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:  # noqa: ARG001
    """The weighted cosine of CSA, for every ridge and number of dimensions."""
    for ridge in RIDGES:
        found = canonical(train.image_of_text, train.texts, ridge)
        for dimensions in sorted({max(1, round(share * len(found.correlations))) for share in SHARES}):
            yield Fitted({"ridge": ridge, "dimensions": dimensions}, weighted_cosine_of(found, dimensions))


def cosine_of(found: Canonical, power: float) -> Alignment:
    """Dot products are the cosines of canonical variates times correlations to a power."""
    weight = found.correlations**power
    return Alignment(
        lambda rows: unit(found.image_variates(rows) * weight).astype(np.float32),
        lambda rows: unit(found.text_variates(rows) * weight).astype(np.float32),
    )


def weighted_cosine_of(found: Canonical, dimensions: int) -> Alignment:
    """Dot products are the sums of CSA over the first dimensions."""
    half = np.sqrt(found.correlations[:dimensions])
    return Alignment(
        lambda rows: (unit(found.image_variates(rows)[:, :dimensions]) * half).astype(np.float32),
        lambda rows: (unit(found.text_variates(rows)[:, :dimensions]) * half).astype(np.float32),
    )


def _root(centred: Float64s, ridge: float) -> Float64s:
    """The lower Cholesky factor of the covariance of centred rows, with its ridge."""
    covariance = centred.T @ centred / len(centred)
    covariance[np.diag_indices_from(covariance)] += ridge * np.trace(covariance) / len(covariance)
    factor: Float64s = cholesky(covariance, lower=True)
    return factor
