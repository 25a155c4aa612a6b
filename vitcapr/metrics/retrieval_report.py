"""Retrieval scores in the form of a metrics file."""

import re
from collections.abc import Iterable, Sequence

from vitcapr.formats.scores import Ranks, Score
from vitcapr.metrics import retrieval
from vitcapr.metrics.bootstrap import plain_score, score_of
from vitcapr.metrics.ranks import Truth

Folds = list[tuple[Ranks, Truth]]


def retrieval_scores(ranks: Ranks, truth: Truth, folds: Folds, samples: int, seed: int) -> dict[str, Score]:
    """All scores of a pool, the chance levels and, with the suffix ``_1k``, the means over the folds."""
    whole = retrieval.measures(ranks, truth)
    scores = {name: score_of(measure, samples, seed) for name, measure in whole.items()}
    scores |= median_scores([(ranks, truth)], "", samples, seed)
    if folds:
        each = [retrieval.measures(*fold) for fold in folds]
        means = {name: retrieval.mean_of_folds([measures[name] for measures in each]) for name in whole}
        scores |= {f"{name}_1k": score_of(measure, samples, seed) for name, measure in means.items()}
        scores |= median_scores(folds, "_1k", samples, seed)
    images = len(truth.captions_each)
    return scores | {name: plain_score(value, images) for name, value in retrieval.chance(truth).items()}


def pool_protocol(truth: Truth, split: str, languages: Sequence[str]) -> list[str]:
    """The parts of the protocol that a comparison with other results needs."""
    images, captions = len(truth.captions_each), len(truth.caption_image)
    least, most = truth.captions_each.min(), truth.captions_each.max()
    each = str(least) if least == most else f"{least}-{most}"
    parts = [f"pool:{images}images,{captions}captions", f"captions:{each}", f"i2t:any-of-{each}"]
    parts += ["ties:pessimistic", "scores:float32"]
    if images >= retrieval.FOLDS * retrieval.FOLD_IMAGES:
        parts.append(f"1k:mean of {retrieval.FOLDS} folds")
    return [*parts, f"split:{split}", f"lang:{'+'.join(languages)}"]


def median_scores(folds: Folds, suffix: str, samples: int, seed: int) -> dict[str, Score]:
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


def searched(protocols: Iterable[str]) -> dict[str, str]:
    """What was asked and what was searched by direction, as the protocols of scores say it: one line for each pool.

    >>> searched(["pool:9images,45captions|ties:pessimistic"])
    {'i2t': '9 images among 45 captions', 't2i': '45 captions among 9 images'}
    """
    found: dict[str, dict[str, None]] = {"i2t": {}, "t2i": {}}
    for protocol in protocols:
        if whole := re.search(r"pool:(\d+)images,(\d+)captions", protocol):
            images, captions = whole.groups()
            pools = {"i2t": (images, captions), "t2i": (captions, images)}
        else:
            apart = re.findall(r"(i2t|t2i):(\d+)(?:images|captions) of (\d+)(?:images|captions)", protocol)
            pools = {direction: (queries, items) for direction, queries, items in apart}
        for direction, (queries, items) in pools.items():
            kinds = ("images", "captions") if direction == "i2t" else ("captions", "images")
            found[direction][f"{int(queries):,} {kinds[0]} among {int(items):,} {kinds[1]}"] = None
    return {direction: "\n".join(lines) or "pool not told" for direction, lines in found.items()}
