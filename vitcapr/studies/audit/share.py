"""From suspicions of pairs and of random pairs: the share of wrong pairs, and what one suspicion means.

The suspicions are a mixture of wrong pairs, which look like random ones, and of right pairs. A share u of the random
pairs has at least the suspicion t(u). If no right pair has, the share of wrong pairs is ``P(suspicion >= t(u)) / u``;
if some have, it is less (Blanchard et al. 2010, Semi-Supervised Novelty Detection). u is a half, as most wrong pairs
count then, unless a smaller u gives significantly less: then right pairs look like the less suspicious of the random
ones.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

_LEVELS = (0.5, 0.25, 0.1, 0.05)
"""The values of u."""
_Z = 1.96
_BINS = 1000
Numbers = NDArray[np.floating]


class Share(NamedTuple):
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


def wrong_share(pairs: Numbers, null: Numbers, groups: NDArray[np.int64]) -> Share:
    """The share of wrong pairs.

    Args:
        groups: (M,) the image of each caption; captions of one image are not independent.
    """
    best = Share(1.0, 1.0, 1.0)
    for level in _LEVELS:
        share = share_of(pairs >= np.quantile(null, 1 - level), groups)
        scaled = Share(*(min(1.0, number / level) for number in share))
        best = scaled if scaled.high < best.low else best
    return best


def share_of(flags: NDArray[np.bool_], groups: NDArray[np.int64]) -> Share:
    """The share of captions with a flag; Wilson's interval, with the number of captions that would vary as much if they
    were independent."""
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
