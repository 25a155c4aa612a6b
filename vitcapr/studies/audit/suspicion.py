"""How suspicious each caption is, and each caption with an image that is drawn at random: the null.

Image and caption are scored by up to three cosines (:meth:`vitcapr.studies.audit.ridge.Ridges.points`): of the caption
and the one expected of the image, of the image and the one expected of the caption, and, if every image has several
captions, of the caption and the mean of the image's other captions. The suspicion is

    (mean score of the best other images with the caption + mean score of the best other captions with the image) / 2
        - score of the pair

which is the negative of CSLS (Conneau et al. 2018, Word Translation Without Parallel Data) without a factor of 2. The
others are a sample, the rivals. Two passes over the stores, a chunk at a time: moments, then scores.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vitcapr.store.reader import FeatureArray
from vitcapr.studies.audit.ridge import Floats, Moments, Points, Ridges, Rows

IMAGE_RIDGE, TEXT_RIDGE = 0.03, 0.1
_NEAREST = 0.02
"""The share of the rivals that count as the best."""
_CHUNK = 8192
"""Captions in a chunk, about."""


class Suspicion(NamedTuple):
    """Of M captions: ``pairs`` (M,), ``null`` (M,), and the rows of the image and of the caption among the rivals that
    fit better than the own ones, -1 where none does."""

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
    """Pairs of R images and one caption of each: points (R, E), their rows, and the mean score of the best captions
    with each image."""

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
    moments: Moments | None = None
    for images in stores.chunks():
        x, y, counts = stores.read(images)
        part = Moments.of(x, y, counts)
        moments = part if moments is None else moments + part
        advance(len(y))
    assert moments is not None
    ridges = Ridges(moments, IMAGE_RIDGE, TEXT_RIDGE, siblings=bool(stores.counts.min() > 1))
    captioned = np.flatnonzero(stores.counts)
    sample = np.sort(draw.choice(captioned, min(rivals, len(captioned)), replace=False))
    others = _rivals(ridges, stores, sample)
    results = []
    for images in stores.chunks():
        results.append(_score(ridges, stores, images, others, draw))
        advance(len(results[-1].pairs))
    return Suspicion(*map(np.concatenate, zip(*results, strict=True)))


def _rivals(ridges: Ridges, stores: PairedStores, images: Rows) -> _Rivals:
    counts = stores.counts[images]
    first = np.cumsum(counts) - counts
    of_images, of_texts = (points[first] for points in ridges.points(*stores.read(images)))
    scores = of_images @ of_texts.T
    np.fill_diagonal(scores, -np.inf)
    return _Rivals(of_images, of_texts, images, stores.captions(images)[first], _mean_of_best(scores))


def _score(ridges: Ridges, stores: PairedStores, images: Rows, rivals: _Rivals, draw: np.random.Generator) -> Suspicion:
    of_images, of_texts = ridges.points(*stores.read(images))
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
