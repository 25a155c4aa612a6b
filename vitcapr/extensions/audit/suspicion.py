"""Suspicion of each caption, and of each caption with a random image, which is the null distribution.

Two ridge regressions say which caption is expected of an image, and which image of a caption. Image and caption are
scored by up to three cosines: of the caption and the expected one, of the image and the expected one, and, if every
image has several captions, of the caption and the mean of the image's other captions. The suspicion is

    (mean score of the best other images with the caption + mean score of the best other captions with the image) / 2
        - score of the pair

which is the negative of CSLS (Conneau et al. 2018, Word Translation Without Parallel Data) without a factor of 2. The
others are a sample, the rivals. Two passes over the stores, a chunk at a time: moments, then scores.

The suspicions are a mixture of wrong pairs, which look like random ones, and of right pairs. A share u of the random
pairs has at least the suspicion t(u). If no right pair has, the share of wrong pairs is ``P(suspicion >= t(u)) / u``;
if some have, it is less (Blanchard et al. 2010, Semi-Supervised Novelty Detection). u is a half, as most wrong pairs
count then, unless a smaller u gives significantly less: then right pairs look like the less suspicious of the random
ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import isotonic_regression

from vitcapr.metrics.clip_score import unit
from vitcapr.store.reader import FeatureArray

Floats = NDArray[np.float64]
Points = NDArray[np.float32]
Rows = NDArray[np.int64]
Numbers = NDArray[np.floating]
IMAGE_RIDGE, TEXT_RIDGE = 0.03, 0.1
RIVALS = 2000
"""Other images and captions that each pair is compared with."""
_NEAREST = 0.02
"""The share of the rivals that count as the best."""
_CHUNK = 8192
"""Captions in a chunk, about."""
_LEVELS = (0.5, 0.25, 0.1, 0.05)
"""The values of u."""
_Z, _BINS = 1.96, 1000


class Suspicion(NamedTuple):
    """Suspicion of M captions.

    Rows of the image and the caption among the rivals that fit better than the own ones, or -1: (M,).
    """

    pairs: Points
    null: Points
    better_image: Rows
    better_caption: Rows


@dataclass(frozen=True)
class PairedStores:
    """Paired vectors of two stores.

    Attributes:
        images, texts: (N, Dx) and (M, Dy), vectors of a store.
        counts: (N,) number of captions of each image; they are in the order of the images.
    """

    images: FeatureArray
    texts: FeatureArray
    counts: Rows

    def chunks(self) -> list[Rows]:
        """Rows of images with about ``_CHUNK`` captions."""
        number = len(self.counts)
        return np.array_split(np.arange(number), min(number, self.counts.sum() // _CHUNK + 1))

    def read(self, images: Rows) -> tuple[Floats, Floats, Rows]:
        """Return the vectors of the image and of each caption of these images, and the captions' numbers."""
        counts = self.counts[images]
        vectors = np.repeat(self.images.gather(images), counts, axis=0), self.texts.gather(self.captions(images))
        return vectors[0].astype(np.float64), vectors[1].astype(np.float64), counts

    def captions(self, images: Rows) -> Rows:
        """Return the rows of the captions of these images."""
        counts = self.counts[images]
        first = (np.cumsum(self.counts) - self.counts)[images]
        return np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())


class Ridge(NamedTuple):
    """Ridge regression of the rows of one side of the pairs on those of the other (Hoerl and Kennard 1970).

    Every row begins with a 1, whose weight is not penalised. With A = X'X plus the ridge, ``x' inv(A) X'Y`` predicts y.
    The pairs of an image are several rows. With H = X inv(A) X' of these rows, what the fit without them leaves
    unexplained of them is ``inv(I - H)`` times what the whole fit leaves (Cook 1977, for several rows).

    Attributes:
        mean: (D,) of the predictors.
        inverse: (D + 1, D + 1).
        weights: (D + 1, E).
    """

    mean: Floats
    inverse: Floats
    weights: Floats

    @classmethod
    def fit(cls, xx: Floats, xy: Floats, ridge: float) -> "Ridge":
        """Fit a ridge regression.

        Args:
            xx, xy: the moments X'X and X'Y; ``xx[0, 0]`` is the number of pairs.
            ridge: in units of the mean variance of the predictors.
        """
        number, mean = xx[0, 0], xx[0, 1:] / xx[0, 0]
        variance = np.diag(xx)[1:] / number - mean**2
        penalty = np.full(len(xx), ridge * number * max(variance.mean(), 1e-12))
        penalty[0] = 0
        inverse = cho_solve(cho_factor(xx + np.diag(penalty)), np.eye(len(xx)))
        return cls(mean, inverse, inverse @ xy)

    def left_out(self, x: Floats, y: Floats, counts: Rows) -> Floats:
        """(m, E): what the pairs of the other images predict for each pair.

        Args:
            x, y: (m, D) and (m, E), pairs of the moments, in the order of their images.
            counts: the number of pairs of each image.
        """
        rows = np.insert(x, 0, 1, axis=1)
        solved, unexplained = rows @ self.inverse, y - rows @ self.weights
        first = np.cumsum(counts) - counts
        for number in np.unique(counts[counts > 0]):
            group = first[counts == number][:, None] + np.arange(number)
            hat = np.einsum("gid,gjd->gij", solved[group], rows[group], optimize=True)
            unexplained[group] = np.linalg.solve(np.eye(number) - hat, unexplained[group])
        return y - unexplained


class _Fit(NamedTuple):
    """The two regressions; ``siblings``: whether the other captions of an image count."""

    to_text: Ridge
    to_image: Ridge
    siblings: bool

    def points(self, images: Floats, texts: Floats, counts: Rows) -> tuple[Points, Points]:
        """Return the points (m, E) of the image and of the caption of each pair.

        :meth:`PairedStores.read` gives the pairs.

        Their dot product is the score. With siblings, the point of the image differs from caption to caption.
        """
        words = unit(texts - self.to_image.mean)
        of_images = [
            unit(self.to_text.left_out(images, texts, counts) - self.to_image.mean),
            unit(images - self.to_text.mean),
        ]
        of_texts = [words, unit(self.to_image.left_out(texts, images, counts) - self.to_text.mean)]
        if self.siblings:
            sums = np.add.reduceat(words, np.cumsum(counts) - counts, axis=0)
            of_images.append(unit(np.repeat(sums, counts, axis=0) - words))
            of_texts.append(words)
        return np.hstack(of_images).astype(np.float32), np.hstack(of_texts).astype(np.float32)


class _Rivals(NamedTuple):
    """Pairs of R images and one caption of each.

    They have points (R, E), rows, and the mean score of the best captions with each image.
    """

    images: Points
    texts: Points
    image_row: Rows
    caption_row: Rows
    best: Points


def measure(stores: PairedStores, rivals: int = RIVALS, advance: Callable[[int], None] = lambda _: None) -> Suspicion:
    """Return the suspicion of every caption.

    Args:
        rivals: images that are drawn, and captions, one of each.
        advance: receives the number of captions that a pass has read.
    """
    draw, moments, width = np.random.default_rng(0), np.zeros(()), 0
    for chunk in stores.chunks():
        images, texts, _ = stores.read(chunk)
        width = images.shape[1]
        rows = np.hstack([np.ones((len(texts), 1)), images, texts])
        moments = moments + rows.T @ rows
        advance(len(texts))
    both = np.split(np.arange(1, len(moments)), [width])
    to_text, to_image = (
        Ridge.fit(moments[np.ix_(rows := np.r_[0, own], rows)], moments[np.ix_(rows, other)], ridge)
        for own, other, ridge in zip(both, both[::-1], (IMAGE_RIDGE, TEXT_RIDGE), strict=True)
    )
    fit = _Fit(to_text, to_image, bool(stores.counts.min() > 1))
    captioned = np.flatnonzero(stores.counts)
    others = _rivals(fit, stores, np.sort(draw.choice(captioned, min(rivals, len(captioned)), replace=False)))
    results = []
    for chunk in stores.chunks():
        results.append(_score(fit, stores, chunk, others, draw))
        advance(len(results[-1].pairs))
    return Suspicion(*map(np.concatenate, zip(*results, strict=True)))


def _rivals(fit: _Fit, stores: PairedStores, images: Rows) -> _Rivals:
    counts = stores.counts[images]
    first = np.cumsum(counts) - counts
    of_images, of_texts = (points[first] for points in fit.points(*stores.read(images)))
    scores = of_images @ of_texts.T
    np.fill_diagonal(scores, -np.inf)
    return _Rivals(of_images, of_texts, images, stores.captions(images)[first], _mean_of_best(scores))


def _score(fit: _Fit, stores: PairedStores, images: Rows, rivals: _Rivals, draw: np.random.Generator) -> Suspicion:
    of_images, of_texts = fit.points(*stores.read(images))
    own_image, rows = np.repeat(images, stores.counts[images]), np.arange(len(of_texts))
    own = (of_images * of_texts).sum(axis=1)
    with_images, with_captions = of_texts @ rivals.images.T, of_images @ rivals.texts.T
    same = own_image[:, None] == rivals.image_row
    with_images[same] = with_captions[same] = -np.inf
    best_images, best_captions = _mean_of_best(with_images), _mean_of_best(with_captions)
    other = draw.integers(len(rivals.image_row), size=len(own))
    other[rivals.image_row[other] == own_image] -= 1
    random = with_images[rows, other]
    image, caption = with_images.argmax(axis=1), with_captions.argmax(axis=1)
    better = with_images[rows, image] > own, with_captions[rows, caption] > own
    # To the caption of a random pair, its own image is one of the others.
    np.copyto(with_images, own[:, None], where=same)
    with_images[rows, other] = -np.inf
    return Suspicion(
        (best_images + best_captions) / 2 - own,
        (_mean_of_best(with_images) + rivals.best[other]) / 2 - random,
        np.where(better[0], rivals.image_row[image], -1),
        np.where(better[1], rivals.caption_row[caption], -1),
    )


def _mean_of_best(scores: NDArray[np.float32]) -> Points:
    """(n, R) -> (n,)."""
    number = max(1, round(_NEAREST * scores.shape[1]))
    return np.asarray(-np.partition(-scores, number - 1, axis=1)[:, :number].mean(axis=1))


class Share(NamedTuple):
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


def wrong_share(pairs: Numbers, null: Numbers, groups: Rows) -> Share:
    """Return the share of wrong pairs.

    Args:
        groups: (M,) the image of each caption; captions of one image are not independent.
    """
    best = Share(1.0, 1.0, 1.0)
    for level in _LEVELS:
        share = share_of(pairs >= np.quantile(null, 1 - level), groups)
        scaled = Share(*(min(1.0, number / level) for number in share))
        best = scaled if scaled.high < best.low else best
    return best


def share_of(flags: NDArray[np.bool_], groups: Rows) -> Share:
    """Return the share of captions with a flag, with Wilson's interval.

    The interval counts as many captions as would vary as much if they were independent.
    """
    number, share = len(flags), float(flags.mean())
    sums = np.bincount(groups, flags - share)
    variance = float(np.square(sums).sum()) / number**2
    effective = min(number, share * (1 - share) / variance) if variance > 0 else number
    middle = (share + _Z**2 / (2 * effective)) / (1 + _Z**2 / effective)
    half = _Z * np.sqrt(share * (1 - share) / effective + _Z**2 / (4 * effective**2)) / (1 + _Z**2 / effective)
    low = float(middle - half) if share > 0 else 0.0
    return Share(share, max(0.0, low), min(1.0, float(middle + half)))


def right_as_suspicious(pairs: Numbers, null: Numbers, wrong: float) -> Numbers:
    """(M,): the p-value of each pair: the share of the right pairs that have at least its suspicion.

    The right pairs are all pairs less the share ``wrong`` of random ones. At least one pair counts, so p > 0.
    """
    ordered, order = np.sort(null), np.argsort(-pairs, kind="stable")
    number = len(pairs)
    at_least = number - np.searchsorted(pairs[order][::-1], pairs[order], side="left")
    random = len(null) - np.searchsorted(ordered, pairs[order], side="left")
    right = np.maximum.accumulate(np.maximum(at_least - wrong * number * random / len(null), 0))
    result = np.empty(number)
    result[order] = np.minimum(1.0, (1 + right) / (1 + number * (1 - wrong)))
    return result


def probability_wrong(pairs: Numbers, null: Numbers, wrong: float) -> Numbers:
    """(M,): the probability that each pair is wrong: the density of random pairs times ``wrong`` by that of all pairs.

    Their ratio is fitted on a histogram, so that it never falls with the suspicion (isotonic regression).
    """
    edges = np.unique(np.quantile(np.concatenate([pairs, null]), np.linspace(0, 1, _BINS + 1)[1:-1]))
    at, of_null = np.searchsorted(edges, pairs, side="right"), np.searchsorted(edges, null, side="right")
    counts = np.stack([np.bincount(places, minlength=len(edges) + 1) for places in (at, of_null)])
    totals = counts.sum(axis=0)
    some = totals > 0
    share = np.zeros(len(totals))
    share[some] = isotonic_regression(counts[1, some] / totals[some], weights=totals[some]).x
    ratio = share / np.maximum(1 - share, 1e-12) * len(pairs) / len(null)
    return np.asarray(np.minimum(1.0, wrong * ratio)[at])
