"""Scores of retrieval as they stand in a metrics file."""

from vitcapr.metrics import retrieval
from vitcapr.metrics.ranks import Ranks, Truth
from vitcapr.metrics.report import Score, plain_score


def median_scores(folds: list[tuple[Ranks, Truth]], suffix: str, samples: int, seed: int) -> dict[str, Score]:
    """The median ranks of both directions, of folds their means, with intervals where samples are drawn.

    Args:
        suffix: after the names of the scores.
    """
    count = sum(len(ranks.i2t) for ranks, _ in folds)
    scores = {direction: plain_score(value, count) for direction, value in retrieval.median_ranks(folds).items()}
    if samples:
        for direction, bounds in retrieval.median_intervals(folds, samples, seed).items():
            scores[direction] |= {"low": bounds.low, "high": bounds.high}
    return {f"{direction}_median_rank{suffix}": score for direction, score in scores.items()}
