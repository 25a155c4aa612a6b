"""Ridge regressions from images to captions and back, from moments, with predictions that leave the own image out.

Hoerl and Kennard 1970. Every row begins with a 1, whose weight is not penalised. Captions y_1 to y_M, each with the row
x of its image, have the moments ``XX = sum x x'``, ``XY = sum x y'``, ``YY = sum y y'``. With A and C the first and the
last plus their ridges, ``inv(A) XY`` predicts captions from images and ``inv(C) XY'`` images from captions. Without an
image with n captions of sum s, and with h = x' inv(A) x, the prediction for this image is (Sherman and Morrison 1950)

    (x' inv(A) XY - h s) / (1 - n h)

Its captions are n rows Y of the other regression. With H = Y inv(C) Y', what the fit without them leaves unexplained of
them is ``inv(I - H)`` times what the whole fit leaves (Cook 1977, for several rows).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Floats = NDArray[np.float64]
Points = NDArray[np.float32]
Rows = NDArray[np.int64]
F = TypeVar("F", np.float32, np.float64)


@dataclass(frozen=True)
class Moments:
    """Sums over pairs: ``xx (Dx+1, Dx+1)``, ``xy (Dx+1, Dy+1)``, ``yy (Dy+1, Dy+1)``; ``xx[0, 0]`` is their number."""

    xx: Floats
    xy: Floats
    yy: Floats

    @classmethod
    def of(cls, images: Floats, texts: Floats, counts: Rows) -> Self:
        """Those of images (n, Dx) and their captions (m, Dy), in the order of the images, of which each has ``counts``
        captions."""
        x, y = _with_one(images), _with_one(texts)
        return cls((x * counts[:, None]).T @ x, x.T @ sum_groups(y, counts), y.T @ y)

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.xx + other.xx, self.xy + other.xy, self.yy + other.yy)


@dataclass(frozen=True)
class Ridges:
    """Both regressions; ``image_ridge`` and ``text_ridge`` are in units of the mean variance of the features.

    ``siblings``: whether the other captions of an image count, too.
    """

    moments: Moments
    image_ridge: float
    text_ridge: float
    siblings: bool

    @cached_property
    def _inverses(self) -> tuple[Floats, Floats]:
        return _inverse(self.moments.xx, self.image_ridge), _inverse(self.moments.yy, self.text_ridge)

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        a, c = self._inverses
        return a @ self.moments.xy[:, 1:], c @ self.moments.xy.T[:, 1:]

    @property
    def means(self) -> tuple[Floats, Floats]:
        """(Dx,) and (Dy,), over the pairs."""
        number = self.moments.xx[0, 0]
        return self.moments.xx[0, 1:] / number, self.moments.yy[0, 1:] / number

    def left_out(self, images: Floats, texts: Floats, counts: Rows) -> tuple[Floats, Floats]:
        """What the other images predict for these.

        Args:
            images, texts, counts: as for :meth:`Moments.of`; they are among the pairs of the moments.

        Returns:
            (n, Dy), the caption expected of each image, and (m, Dx), the image expected of each caption.
        """
        (a, c), (to_text, to_image) = self._inverses, self._weights
        x, y = _with_one(images), _with_one(texts)
        h = np.einsum("ij,jk,ik->i", x, a, x, optimize=True)[:, None]
        expected_texts = (x @ to_text - h * sum_groups(texts, counts)) / (1 - counts[:, None] * h)
        own, solved = np.repeat(images, counts, axis=0), y @ c
        unexplained = own - y @ to_image
        first = np.cumsum(counts) - counts
        for number in np.unique(counts[counts > 0]):
            group = first[counts == number][:, None] + np.arange(number)
            hat = np.einsum("gid,gjd->gij", solved[group], y[group], optimize=True)
            unexplained[group] = np.linalg.solve(np.eye(number) - hat, unexplained[group])
        return expected_texts, own - unexplained

    def points(self, images: Floats, texts: Floats, counts: Rows) -> tuple[Points, Points]:
        """Of each caption, the point of its image and its own: (m, E) float32 each. Their dot product is the score.

        With ``siblings``, the point of the image also holds the mean of its other captions, so it differs from caption
        to caption.
        """
        expected_texts, expected_images = self.left_out(images, texts, counts)
        image_mean, text_mean = self.means
        owner = np.repeat(np.arange(len(counts)), counts)
        of_images = [_unit(expected_texts - text_mean)[owner], _unit(images - image_mean)[owner]]
        words = _unit(texts - text_mean).astype(np.float32)
        of_texts = [words, _unit(expected_images - image_mean)]
        if self.siblings:
            of_images.append(_unit(sum_groups(words.astype(np.float64), counts)[owner].astype(np.float32) - words))
            of_texts.append(words)
        return np.hstack(of_images).astype(np.float32), np.hstack(of_texts).astype(np.float32)


def sum_groups(rows: Floats, counts: Rows) -> Floats:
    """(n, D): the sums of the first ``counts[0]`` rows, of the next ``counts[1]`` rows and so on."""
    sums = np.zeros((len(counts), rows.shape[1]))
    some = counts > 0
    sums[some] = np.add.reduceat(rows, (np.cumsum(counts) - counts)[some], axis=0)
    return sums


def _inverse(moments: Floats, ridge: float) -> Floats:
    number, mean = moments[0, 0], moments[0, 1:] / moments[0, 0]
    variance = np.diag(moments)[1:] / number - mean**2
    penalty = np.full(len(moments), ridge * number * max(variance.mean(), 1e-12))
    penalty[0] = 0
    return np.asarray(cho_solve(cho_factor(moments + np.diag(penalty)), np.eye(len(moments))))


def _with_one(rows: Floats) -> Floats:
    return np.hstack([np.ones((len(rows), 1)), rows])


def _unit(rows: NDArray[F]) -> NDArray[F]:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
