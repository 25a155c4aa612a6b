"""Bootstrap confidence intervals over images, and a paired test of two systems on the same images.

Every score here is a function of sums over the images (a mean is a sum over a count), so that a resample is a weighted
sum of the per-image statistics, and thousands of them are one matrix product.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

from vitcapr.formats.scores import Score

Array = npt.NDArray[np.float64]

LEVEL = 0.95
_FEW = 50
"""Images of a split below which a warning stands beside its scores."""
_BLOCK = 64
"""Bootstrap samples per block; a block holds _BLOCK x N numbers."""
_DECIMALS = 8
"""Decimals of a score in a file. Further decimals may depend on the order of a sum."""
HIGHER, LOWER, NOT_SHOWN, NOT_TESTED = "higher", "lower", "no difference shown", "not tested"
"""The verdicts on a difference."""


def few_images(images: int) -> str:
    """Say how little the scores of so few images tell; empty from 50 images on.

    The width is that of Wald's interval of a share of one half.
    """
    if images >= _FEW:
        return ""
    if images == 1:
        return (
            "One image tells nothing of a model: its scores have no interval, and CIDEr, which weighs by images, is 0."
        )
    width = 100 * 1.96 * (0.25 / images) ** 0.5
    few = f"{images} images tell little: the 95 % interval of a share, such as Recall@1, is up to ± {width:.0f} points"
    return f"{few}, and that of CIDEr wider. Take a larger split before you compare models."


@dataclass(frozen=True)
class Measure:
    """A score and the per-image values that it is computed from.

    Attributes:
        statistics: (N, K), K numbers an image that add up over the images.
        aggregate: from sums (..., K) to scores (...); of one image's row it is the score of that image.
        n: images that count, where it is not all N.
    """

    statistics: Array
    aggregate: Callable[[Array], Array]
    n: int | None = None

    @property
    def value(self) -> float:
        return float(self.aggregate(self.statistics.sum(axis=0)))

    @property
    def per_image(self) -> Array:
        """(N,)."""
        return self.aggregate(self.statistics)


class Interval(NamedTuple):
    low: float
    high: float


class Comparison(NamedTuple):
    """System A against system B on the same images."""

    difference: float
    """A - B."""
    low: float
    high: float
    """The 95 % bootstrap interval of the difference over images."""
    p_value: float
    """The two-sided p-value of a randomisation test that swaps the systems' outputs per image; exact, which is the sign
    test, where a score counts images."""


def ratio(sums: Array) -> Array:
    """(..., 2) sums of numerators and denominators -> (...); nan where there is nothing to divide by."""
    counted = sums[..., 1] != 0
    shares: Array = np.divide(sums[..., 0], sums[..., 1], out=np.full(sums.shape[:-1], np.nan), where=counted)
    return shares


def mean_measure(values: npt.ArrayLike) -> Measure:
    """Return the mean of a number an image: (N,)."""
    column = np.asarray(values, dtype=np.float64)
    return Measure(np.stack([column, np.ones_like(column)], axis=1), ratio)


def ratio_measure(numerators: npt.ArrayLike, denominators: npt.ArrayLike) -> Measure:
    """Sum over sum, both (N,): a mean over things of which an image has several, or none."""
    statistics = np.stack([np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)], axis=1)
    return Measure(statistics, ratio, n=int(np.count_nonzero(statistics[:, 1])))


def interval(measure: Measure, samples: int, seed: int) -> Interval | None:
    """Return the 95 % percentile interval over resamples of the images; None for no samples or no score.

    Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13. For CIDEr the inverse document
    frequencies stay those of the whole split.
    """
    if samples == 0 or np.isnan(measure.value):
        return None
    values = measure.aggregate(_resampled_sums(measure.statistics, samples, seed))
    return percentiles(values)


def compare(a: Measure, b: Measure, samples: int, seed: int) -> Comparison:
    """Return the difference A - B of two systems, its paired bootstrap interval, and an approximate randomisation test.

    Both measures are of the same images in the same order. Source of the test: Noreen, Computer-Intensive
    Methods for Testing Hypotheses (1989); p = (1 + exchanges at least as far apart) / (1 + samples).
    """
    if a.statistics.shape != b.statistics.shape:
        raise ValueError(f"the systems have statistics of {a.statistics.shape} and {b.statistics.shape}")
    difference = a.value - b.value
    width = a.statistics.shape[1]
    sums = _resampled_sums(np.concatenate([a.statistics, b.statistics], axis=1), samples, seed)
    low, high = percentiles(a.aggregate(sums[:, :width]) - b.aggregate(sums[:, width:]))
    if _counts_images(a) and _counts_images(b):
        gained, lost = (int(np.count_nonzero(sign * (a.per_image - b.per_image) > 0)) for sign in (1, -1))
        exact = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
        return Comparison(difference, low, high, float(exact))

    random = np.random.default_rng([seed, 1])
    total_a, total_b = a.statistics.sum(axis=0), b.statistics.sum(axis=0)
    gap = b.statistics - a.statistics
    as_far = 0
    for start in range(0, samples, _BLOCK):
        exchanged = random.integers(0, 2, (min(_BLOCK, samples - start), len(gap))).astype(np.float64) @ gap
        apart = np.abs(a.aggregate(total_a + exchanged) - b.aggregate(total_b - exchanged))
        as_far += int(np.count_nonzero(apart >= abs(difference) - 1e-12))
    return Comparison(difference, low, high, (1 + as_far) / (1 + samples))


def _counts_images(measure: Measure) -> bool:
    """Whether the score is the share of images that have a property."""
    counted, of = measure.statistics[:, 0], measure.statistics[:, -1]
    return measure.aggregate is ratio and bool((of == 1).all() and np.isin(counted, (0, 1)).all())


def verdict(low: float, high: float) -> str:
    """Say whether a 95 % interval shows a difference."""
    if low > 0:
        return HIGHER
    return LOWER if high < 0 else NOT_SHOWN


def score_of(measure: Measure, samples: int, seed: int) -> Score:
    """Return a measure as an entry of metrics.json: rounded, with its 95 % interval over the images."""
    bounds = interval(measure, samples, seed)
    low, high = (None, None) if bounds is None else (_rounded(bounds.low), _rounded(bounds.high))
    count = len(measure.statistics) if measure.n is None else measure.n
    return {"value": _rounded(measure.value), "low": low, "high": high, "n": count}


def plain_score(value: float, n: int) -> Score:
    """Return a number that resampling images would distort, such as a count of different words: no interval."""
    return {"value": _rounded(value), "low": None, "high": None, "n": n}


def interval_protocol(samples: int, seed: int) -> list[str]:
    """Describe the resamples of intervals, for a protocol; empty without intervals."""
    return [f"ci:95,samples={samples},seed={seed}"] if samples else []


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(value, _DECIMALS)


def _resampled_sums(statistics: Array, samples: int, seed: int) -> Array:
    """Return sums of the rows over ``samples`` draws of N images with replacement: (samples, K)."""
    random = np.random.default_rng(seed)
    images = len(statistics)
    sums = np.empty((samples, statistics.shape[1]))
    for start in range(0, samples, _BLOCK):
        block = min(_BLOCK, samples - start)
        drawn = random.integers(0, images, (block, images)) + images * np.arange(block)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=block * images).reshape(block, images)
        sums[start : start + block] = counts.astype(np.float64) @ statistics
    return sums


def percentiles(values: Array) -> Interval:
    """Return the 95 % interval of bootstrap samples. A sample without counts has no score and is omitted."""
    low, high = np.nanquantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))
