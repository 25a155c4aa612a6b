"""How suspicious each caption is, and each caption with an image that is drawn at random: the null.

Image and caption are scored by up to three cosines (:meth:`vitcapr.studies.audit.ridge.Ridges.points`): of the caption and
the one expected of the image, of the image and the one expected of the caption, and, if every image has several captions,
of the caption and the mean of the image's other captions. The suspicion is

    (mean score of the best other images with the caption + mean score of the best other captions with the image) / 2
        - score of the pair

which is the negative of CSLS (Conneau et al. 2018, Word Translation Without Parallel Data) without a factor of 2. The
others are a sample, the rivals. Two passes over the stores, a chunk at a time: moments, then scores.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vitcapr.store.reader import FeatureArray
from vitcapr.studies.audit.ridge import Floats, Moments, Points, Ridges, Rows, sum_groups

IMAGE_RIDGE, TEXT_RIDGE = 0.03, 0.1
_NEAREST = 0.02
"""The share of the rivals that count as the best."""
_CHUNK = 8192
"""Captions in a chunk, about."""


class Suspicion(NamedTuple):
    """Of M captions: ``pairs`` (M,), ``null`` (M,), and the rows of the image and of the caption among the rivals that fit
    better than the own ones, -1 where none does."""

    pairs: Points
    null: Points
    better_image: Rows
    better_caption: Rows


@dataclass(frozen=True)
class PairedStores:
    """Attributes:
    images, texts: (N, Dx) and (M, Dy), vectors of a store.
    counts: (N,) number of captions of each image; they are in the order of the images.
    """

    images: FeatureArray
    texts: FeatureArray
    counts: Rows

    def chunks(self) -> Iterator[Rows]:
        """Rows of images with about ``_CHUNK`` captions."""
        ends = np.cumsum(self.counts)
        first = 0
        while first < len(ends):
            before = ends[first] - self.counts[first]
            last = max(first + 1, int(np.searchsorted(ends, before + _CHUNK, side="right")))
            yield np.arange(first, last)
            first = last

    def read(self, images: Rows) -> tuple[Floats, Floats, Rows]:
        """The vectors of these images and of their captions, and the numbers of their captions."""
        counts = self.counts[images]
        vectors = self.images.gather(images), self.texts.gather(self.captions(images))
        return vectors[0].astype(np.float64), vectors[1].astype(np.float64), counts

    def captions(self, images: Rows) -> Rows:
        """The rows of the captions of these images."""
        counts = self.counts[images]
        first = (np.cumsum(self.counts) - self.counts)[images]
        return np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())


class _Rivals(NamedTuple):
    """Images (R, E), one caption of each (R, E), their rows, and the mean score of the best captions with each image."""

    images: Points
    texts: Points
    image_row: Rows
    caption_row: Rows
    best: Points


def measure(
    stores: PairedStores, rivals: int, seed: int = 0, advance: Callable[[int], None] = lambda _: None
) -> Suspicion:
    """The suspicion of every caption.

    Args:
        rivals: images that are drawn, and captions, one of each.
        advance: receives the number of captions that a pass has read.
    """
    draw = np.random.default_rng(seed)
    parts = []
    for images in stores.chunks():
        x, y, counts = stores.read(images)
        parts = [reduce(add, [*parts, Moments.of(x, y, counts)])]
        advance(len(y))
    scorer = _Scorer(Ridges(parts[0], IMAGE_RIDGE, TEXT_RIDGE), bool(stores.counts.min() > 1))
    captioned = np.flatnonzero(stores.counts)
    drawn = np.sort(draw.choice(captioned, min(rivals, len(captioned)), replace=False))
    others = scorer.rivals(stores, drawn)
    results = []
    for images in stores.chunks():
        results.append(scorer.score(stores, images, others, draw))
        advance(len(results[-1].pairs))
    return Suspicion(*map(np.concatenate, zip(*results, strict=True)))


@dataclass(frozen=True)
class _Scorer:
    """``siblings``: whether an image's other captions count."""

    ridges: Ridges
    siblings: bool

    def points(self, images: Floats, texts: Floats, counts: Rows) -> tuple[Points, Points, Points]:
        """Of the images (n, E) and of their captions (m, E), and the scores of the pairs (m,).

        The last part of an image's point is the mean of its captions but the first, as that of a pair is the mean of all
        but its own.
        """
        of_images, of_texts = self.ridges.points(images, texts, counts)
        owner = np.repeat(np.arange(len(counts)), counts)
        scores = (of_images[owner] * of_texts).sum(axis=1)
        if self.siblings:
            words = of_texts[:, : texts.shape[1]]
            sums = sum_groups(words.astype(np.float64), counts).astype(np.float32)
            scores += (_unit(sums[owner] - words) * words).sum(axis=1)
            of_images = np.hstack([of_images, _unit(sums - words[np.cumsum(counts) - counts])])
            of_texts = np.hstack([of_texts, words])
        return of_images, of_texts, scores

    def rivals(self, stores: PairedStores, images: Rows) -> _Rivals:
        of_images, of_texts, _ = self.points(*stores.read(images))
        counts = stores.counts[images]
        first = np.cumsum(counts) - counts
        scores = of_images @ of_texts[first].T
        np.fill_diagonal(scores, -np.inf)
        return _Rivals(of_images, of_texts[first], images, stores.captions(images)[first], _mean_of_best(scores))

    def score(self, stores: PairedStores, images: Rows, rivals: _Rivals, draw: np.random.Generator) -> Suspicion:
        counts = stores.counts[images]
        of_images, of_texts, own = self.points(*stores.read(images))
        owner = np.repeat(np.arange(len(images)), counts)
        by_caption, by_image = of_texts @ rivals.images.T, of_images @ rivals.texts.T
        by_caption[images[owner][:, None] == rivals.image_row] = -np.inf
        by_image[images[:, None] == rivals.image_row] = -np.inf
        best_images, best_captions = _mean_of_best(by_caption), _mean_of_best(by_image)
        rows = np.arange(len(own))
        other = draw.integers(len(rivals.image_row), size=len(own))
        other[rivals.image_row[other] == images[owner]] -= 1
        image, caption = by_caption.argmax(axis=1), by_image.argmax(axis=1)[owner]
        return Suspicion(
            (best_images + best_captions[owner]) / 2 - own,
            (best_images + rivals.best[other]) / 2 - by_caption[rows, other],
            np.where(by_caption[rows, image] > own, rivals.image_row[image], -1),
            np.where(by_image.max(axis=1)[owner] > own, rivals.caption_row[caption], -1),
        )


def _mean_of_best(scores: NDArray[np.float32]) -> Points:
    """(n, R) -> (n,)."""
    number = max(1, round(_NEAREST * scores.shape[1]))
    return np.asarray(-np.partition(-scores, number - 1, axis=1)[:, :number].mean(axis=1))


def _unit(rows: Points) -> Points:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
