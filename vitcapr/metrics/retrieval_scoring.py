"""Scores the embeddings of a split for retrieval: the scores as a metrics file holds them, the ranks, the protocol."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.scores import RankFile, Ranks, Score
from vitcapr.metrics import retrieval_measures as retrieval
from vitcapr.metrics.bootstrap import interval_protocol, plain_score, score_of
from vitcapr.metrics.query_bank import Correction, corrected
from vitcapr.metrics.ranks import CaptionOwners, rank_matches

Folds = Sequence[tuple[Ranks, CaptionOwners]]


class ScoredRetrieval(NamedTuple):
    scores: dict[str, Score]
    ranks: RankFile
    protocol: str
    """How the numbers were made; without it they cannot be compared with anyone's."""


def score_embeddings(
    embedded: Embeddings,
    correction: Correction | None = None,
    *,
    split: str,
    languages: Sequence[str],
    samples: int,
    seed: int,
    advance: Callable[[int], None] = lambda _: None,
) -> ScoredRetrieval:
    """Return the scores of all captions for each image and of all images for each caption.

    Args:
        correction: by a query bank, which the scores then have; the variance is that of the embeddings themselves.
        languages: of the captions, for the protocol.
        advance: see :func:`~vitcapr.metrics.ranks.rank_matches`.
    """
    pool = embedded if correction is None else corrected(embedded, *correction)
    owners = CaptionOwners.of(pool.caption_image, len(pool.images))
    ranked = rank_matches(pool.images, pool.captions, owners.caption_image, advance)
    folds = retrieval.rank_folds(pool.images, pool.captions, owners)
    scores = retrieval_scores(ranked, owners, folds, samples, seed)
    for side, vectors in (("image", embedded.images), ("caption", embedded.captions)):
        scores[f"{side}_variance"] = plain_score(float(vectors.var(axis=0, dtype=np.float64).mean()), len(pool.images))
    protocol = pool_protocol(owners, split, languages)
    protocol += [] if correction is None else [correction.weight.protocol]
    protocol += interval_protocol(samples, seed)
    ranks = RankFile(ranked, pool.image_row, pool.caption_row, pool.caption_image)
    return ScoredRetrieval(scores, ranks, "|".join(protocol))


def retrieval_scores(ranks: Ranks, owners: CaptionOwners, folds: Folds, samples: int, seed: int) -> dict[str, Score]:
    """Return all scores of a pool, the chance levels and, with the suffix ``_1k``, the means over the folds."""
    whole = retrieval.measures(ranks, owners)
    scores = {name: score_of(measure, samples, seed) for name, measure in whole.items()}
    scores |= median_scores([(ranks, owners)], "", samples, seed)
    if folds:
        each = [retrieval.measures(*fold) for fold in folds]
        means = {name: retrieval.mean_of_folds([measures[name] for measures in each]) for name in whole}
        scores |= {f"{name}_1k": score_of(measure, samples, seed) for name, measure in means.items()}
        scores |= median_scores(folds, "_1k", samples, seed)
    images = len(owners.captions_each)
    return scores | {name: plain_score(value, images) for name, value in retrieval.chance(owners).items()}


def median_scores(folds: Folds, suffix: str, samples: int, seed: int) -> dict[str, Score]:
    """Return the median ranks of both directions, of folds their means, with intervals where samples are drawn."""
    count = sum(len(ranks.i2t) for ranks, _ in folds)
    scores = {direction: plain_score(value, count) for direction, value in retrieval.median_ranks(folds).items()}
    if samples:
        for direction, bounds in retrieval.median_intervals(folds, samples, seed).items():
            scores[direction] |= bounds._asdict()
    return {f"{direction}_median_rank{suffix}": score for direction, score in scores.items()}


def recall_lines(scores: Mapping[str, Score]) -> list[str]:
    """Return a line for people for each direction."""
    lines = []
    for direction, query in (("i2t", "image to text"), ("t2i", "text to image")):
        values = (float(scores[f"{direction}_recall_{depth}"]["value"] or 0) for depth in retrieval.DEPTHS)
        recalls = " / ".join(f"{100 * value:.1f}" for value in values)
        lines.append(f"{query}: R@1/5/10 {recalls}, median rank {scores[f'{direction}_median_rank']['value']:g}")
    return lines


def check_pool(pool: Embeddings, data: Manifest, split: str, where: Path) -> list[str]:
    """Check that the pool has all captions of the split in the embedded languages, and all images with such a caption.

    Returns:
        Those languages.

    Raises:
        UserError: an image or caption of the split is missing, or one of another split is there.
    """
    table = data.captions_of(split)
    languages = sorted(table["language"][table["caption_row"].isin(pool.caption_row)].unique())
    table = table[table["language"].isin(languages)]
    images = np.unique(table["image_row"])
    embedded = pool.image_row, pool.caption_row, pool.image_row[pool.caption_image]
    listed = images, table["caption_row"].to_numpy(), table["image_row"].to_numpy()
    if not all(np.array_equal(rows, others) for rows, others in zip(embedded, listed, strict=True)):
        what = f"the embeddings are not of the {len(images)} images and {len(table)} captions of the split '{split}'"
        raise UserError(what, where=where, remedy="embed the split again")
    return languages


def pool_protocol(owners: CaptionOwners, split: str, languages: Sequence[str]) -> list[str]:
    """Return the parts of the protocol that a comparison with other results needs."""
    images, captions = len(owners.captions_each), len(owners.caption_image)
    least, most = owners.captions_each.min(), owners.captions_each.max()
    each = str(least) if least == most else f"{least}-{most}"
    parts = [f"pool:{images}images,{captions}captions", f"captions:{each}", f"i2t:any-of-{each}"]
    parts += ["ties:pessimistic", "scores:float32"]
    if images >= retrieval.FOLDS * retrieval.FOLD_IMAGES:
        parts.append(f"1k:mean of {retrieval.FOLDS} folds")
    return [*parts, f"split:{split}", f"lang:{'+'.join(languages)}"]


def searched(protocols: Iterable[str]) -> dict[str, str]:
    """Return the queries and the pool of each direction, as the protocols of scores say: one line for each pool.

    >>> searched(["pool:9images,45captions|ties:pessimistic"])
    {'i2t': '9 images among 45 captions', 't2i': '45 captions among 9 images'}
    """
    lines: dict[str, dict[str, None]] = {"i2t": {}, "t2i": {}}
    for protocol in protocols:
        if whole := re.search(r"pool:(\d+)images,(\d+)captions", protocol):
            images, captions = whole.groups()
            pools = {"i2t": (images, captions), "t2i": (captions, images)}
        else:
            apart = re.findall(r"(i2t|t2i):(\d+)(?:images|captions) of (\d+)(?:images|captions)", protocol)
            pools = {direction: (queries, items) for direction, queries, items in apart}
        for direction, (queries, items) in pools.items():
            kinds = ("images", "captions") if direction == "i2t" else ("captions", "images")
            lines[direction][f"{int(queries):,} {kinds[0]} among {int(items):,} {kinds[1]}"] = None
    return {direction: "\n".join(pools) or "pool unknown" for direction, pools in lines.items()}
