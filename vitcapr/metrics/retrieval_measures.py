"""Retrieval scores from the retrieval ranks of the positives: recall, ranks, mAP@R and the chance level."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vitcapr.formats.scores import RankFile, Ranks
from vitcapr.metrics.bootstrap import Array, Interval, Measure, mean_measure, percentiles, ratio, ratio_measure
from vitcapr.metrics.ranks import CaptionOwners, Float32s, rank_matches

DEPTHS = (1, 5, 10)
FOLD_IMAGES = 1000
FOLDS = 5


def measures(ranks: Ranks, owners: CaptionOwners) -> dict[str, Measure]:
    """Return the scores of all :data:`METRICS`.

    Values of captions are added up by image, because resampling draws images with all their captions.
    """
    return {name: measure for metric in METRICS for name, measure in metric(ranks, owners).items()}


def file_measures(file: RankFile) -> dict[str, Measure]:
    return measures(file.ranks, CaptionOwners.of(file.caption_image, len(file.image_row)))


def recall(ranks: Ranks, owners: CaptionOwners) -> dict[str, Measure]:
    """Recall@K: an image is a hit when any of its captions is among the first K, a caption when its image is."""
    scores: dict[str, Measure] = {}
    for depth in DEPTHS:
        scores[f"i2t_recall_{depth}"] = mean_measure(ranks.i2t <= depth)
        scores[f"t2i_recall_{depth}"] = ratio_measure(_by_image(ranks.t2i <= depth, owners), owners.captions_each)
    return scores


def rsum(ranks: Ranks, owners: CaptionOwners) -> dict[str, Measure]:
    """Return the sum of the six recalls, 6 at best."""
    counts = owners.captions_each
    sums = [hits for k in DEPTHS for hits in (ranks.i2t <= k, _by_image(ranks.t2i <= k, owners))]
    statistics = np.stack([*sums, np.ones(len(counts)), counts], axis=1).astype(np.float64)
    return {"rsum": Measure(statistics, _sum_of_recalls)}


def mean_rank(ranks: Ranks, owners: CaptionOwners) -> dict[str, Measure]:
    return {
        "i2t_mean_rank": mean_measure(ranks.i2t),
        "t2i_mean_rank": ratio_measure(_by_image(ranks.t2i, owners), owners.captions_each),
    }


def map_r(ranks: Ranks, owners: CaptionOwners) -> dict[str, Measure]:
    """MAP@R; a caption has one relevant image, so that its mAP@R is its Recall@1."""
    return {"i2t_map_r": mean_measure(ranks.i2t_precision), "t2i_map_r": recall(ranks, owners)["t2i_recall_1"]}


METRICS = (recall, mean_rank, map_r, rsum)
"""A new metric is a function and its name here: ``score_retrieval`` reports it, its mean over the 1K folds too."""


def mean_of_folds(folds: Sequence[Measure]) -> Measure:
    """Return the mean of a score over folds, each of which has its own images and is a ratio of its own sums."""
    width = folds[0].statistics.shape[1]
    statistics = np.zeros((sum(len(fold.statistics) for fold in folds), width * len(folds)))
    start = 0
    for place, fold in enumerate(folds):
        statistics[start : start + len(fold.statistics), place * width : (place + 1) * width] = fold.statistics
        start += len(fold.statistics)

    def aggregate(sums: Array) -> Array:
        each = [fold.aggregate(sums[..., i * width : (i + 1) * width]) for i, fold in enumerate(folds)]
        mean: Array = np.mean(each, axis=0)
        return mean

    return Measure(statistics, aggregate)


def rank_folds(images: Float32s, captions: Float32s, owners: CaptionOwners) -> list[tuple[Ranks, CaptionOwners]]:
    """Ranks within each of the first five thousands of images, in their order; none where there are fewer images."""
    if len(images) < FOLDS * FOLD_IMAGES:
        return []
    folds = []
    for first in range(0, FOLDS * FOLD_IMAGES, FOLD_IMAGES):
        begin, end = owners.offsets[first], owners.offsets[first + FOLD_IMAGES]
        own = CaptionOwners.of(owners.caption_image[begin:end] - first, FOLD_IMAGES)
        part = images[first : first + FOLD_IMAGES], captions[begin:end]
        folds.append((rank_matches(*part, own.caption_image), own))
    return folds


def median_ranks(folds: Sequence[tuple[Ranks, CaptionOwners]]) -> dict[str, float]:
    """Return the median rank in both directions, of an even number the mean of the middle two; of folds their mean."""
    return {
        direction: float(np.mean([np.median(getattr(ranks, direction)) for ranks, _ in folds]))
        for direction in ("i2t", "t2i")
    }


def median_intervals(folds: Sequence[tuple[Ranks, CaptionOwners]], samples: int, seed: int) -> dict[str, Interval]:
    """Return the 95 % intervals of :func:`median_ranks`, by resampling images with all their captions.

    The draws are those of :func:`vitcapr.metrics.bootstrap.interval` for the same seed.
    """
    random = np.random.default_rng(seed)
    sizes = [len(owners.captions_each) for _, owners in folds]
    medians = {"i2t": np.empty(samples), "t2i": np.empty(samples)}
    for sample in range(samples):
        drawn = np.bincount(random.integers(0, sum(sizes), sum(sizes)), minlength=sum(sizes))
        times = np.split(drawn, np.cumsum(sizes)[:-1])
        each = list(zip(folds, times, strict=True))
        medians["i2t"][sample] = np.mean([_median(ranks.i2t, own) for (ranks, _), own in each])
        medians["t2i"][sample] = np.mean(
            [_median(ranks.t2i, own[owners.caption_image]) for (ranks, owners), own in each]
        )
    return {direction: percentiles(values) for direction, values in medians.items()}


def chance(owners: CaptionOwners) -> dict[str, float]:
    """Recall@K of a random order: one of c captions is among the first K of M, or the image among the first K of N."""
    captions, counts = len(owners.caption_image), owners.captions_each
    levels = {}
    for depth in DEPTHS:
        place = np.arange(min(depth, captions))
        missed = np.prod(np.maximum(captions - counts[:, None] - place, 0) / (captions - place), axis=1)
        levels[f"i2t_recall_{depth}_chance"] = float(np.mean(1 - missed))
        levels[f"t2i_recall_{depth}_chance"] = min(depth / len(counts), 1.0)
    return levels


def _by_image(values: npt.ArrayLike, owners: CaptionOwners) -> Array:
    """(N,): sums over each image's captions."""
    return np.add.reduceat(np.asarray(values, np.float64), owners.offsets[:-1])


def _sum_of_recalls(sums: Array) -> Array:
    hits, images, captions = sums[..., :-2], sums[..., -2], sums[..., -1]
    shares = [ratio(np.stack([hits[..., i], (images, captions)[i % 2]], axis=-1)) for i in range(hits.shape[-1])]
    total: Array = np.sum(shares, axis=0)
    return total


def _median(ranks: npt.NDArray[np.int32], times: npt.NDArray[np.int64]) -> float:
    """Return the weighted median of ranks; nan if all weights are zero."""
    return float(np.median(np.repeat(ranks, times))) if times.any() else float("nan")
