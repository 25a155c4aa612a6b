"""Retrieval of single queries against pools of candidates: held-out pools, and captions in another language."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings, read_embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.pair_files import Pools
from vitcapr.formats.scores import Score
from vitcapr.metrics.bootstrap import plain_score, ratio_measure, score_of
from vitcapr.metrics.query_bank import Correction, corrected
from vitcapr.metrics.ranks import finite, negatives_before
from vitcapr.metrics.retrieval_measures import DEPTHS
from vitcapr.metrics.retrieval_scoring import check_pool

REMEDY = "run the data stage and embed the split again"
SPLIT = "test"
"""Splits from which queries and their matches are drawn."""

Rows = npt.NDArray[np.integer]


@dataclass(frozen=True)
class QueryRanks:
    """Ranks of queries in their pools.

    Attributes:
        ranks: (Q,) of each query, the rank of its best match; rank 1 is the best, tied candidates rank before it.
        image: (Q,) the image of each query, by which queries are resampled.
        pool: number of candidates.
    """

    ranks: npt.NDArray[np.int64]
    image: Rows
    pool: int

    def scores(self, name: str, samples: int, seed: int) -> dict[str, Score]:
        """Recall@K with intervals and the median rank, named ``name_...``; as everywhere, n counts images."""
        _, place = np.unique(self.image, return_inverse=True)
        counts = np.bincount(place)
        scores = {}
        for depth in DEPTHS:
            hits = np.bincount(place, weights=self.ranks <= depth)
            scores[f"{name}_recall_{depth}"] = score_of(ratio_measure(hits, counts), samples, seed)
        return scores | {f"{name}_median_rank": plain_score(float(np.median(self.ranks)), len(counts))}

    @property
    def shown(self) -> str:
        """Describe the ranks in one line."""
        recalls = " / ".join(f"{100 * float(np.mean(self.ranks <= depth)):.1f}" for depth in DEPTHS)
        return f"R@1/5/10 {recalls}, {len(self.ranks):,} queries among {self.pool:,} candidates"


def rank_queries(
    queries: npt.ArrayLike, candidates: npt.NDArray[np.float32], query_image: Rows, candidate_image: Rows
) -> QueryRanks:
    """Rank the candidates for each query; a candidate of the query's image is a match, and every query has one."""
    pool = finite(candidates, "candidate")
    before, _ = negatives_before(finite(queries, "query"), pool, query_image, candidate_image)
    return QueryRanks(before[:, 0] + 1, query_image, len(pool))


def rank_pools(embedded: Embeddings, pools: Pools) -> dict[str, QueryRanks]:
    """Return the embedded candidates ranked for each embedded query: images first (``i2t``), then texts (``t2i``)."""
    i2t, t2i = split_pools(embedded, pools)
    return {
        "i2t": rank_queries(i2t.images, i2t.captions, np.arange(len(i2t.images)), i2t.caption_image),
        "t2i": rank_queries(t2i.captions, t2i.images, t2i.caption_image, np.arange(len(t2i.images))),
    }


def split_pools(embedded: Embeddings, pools: Pools) -> tuple[Embeddings, Embeddings]:
    """Return the query images with the candidate texts, and the query texts with the candidate images.

    Where captions of one language were embedded, the other queries and candidates are left out. A candidate text of an
    image that is not a query belongs to the place after the last image.

    Args:
        embedded: the split that the pools are of, and the splits of distractors.

    Raises:
        UserError: a query's image is no candidate, or nothing of a pool was embedded.
    """
    texts = np.flatnonzero(np.isin(embedded.caption_row, pools.text_candidates))
    queried = np.flatnonzero(np.isin(embedded.image_row, pools.image_queries))
    queried = queried[np.isin(queried, embedded.caption_image[texts])]
    images = np.flatnonzero(np.isin(embedded.image_row, pools.image_candidates))
    queries = np.flatnonzero(np.isin(embedded.caption_row, pools.text_queries))
    owners = embedded.caption_image[queries]
    if not len(queried) or not len(queries) or not np.isin(owners, images).all():
        raise UserError("the pools are not of the images and captions that were embedded", remedy=REMEDY)
    return _part(embedded, queried, texts), _part(embedded, images, queries)


def _part(whole: Embeddings, images: Rows, captions: Rows) -> Embeddings:
    place = np.full(len(whole.images), len(images), np.int32)
    place[images] = np.arange(len(images))
    rows, owners = whole.image_row[images], place[whole.caption_image[captions]]
    return Embeddings(whole.images[images], whole.captions[captions], rows, whole.caption_row[captions], owners)


def rank_languages(
    embedded: Embeddings, spoken: npt.NDArray[np.object_], languages: Sequence[str]
) -> Iterator[tuple[str, QueryRanks]]:
    """Captions retrieve captions of the same image in another language: each pair, by names such as ``en_to_zh``.

    Any caption of the image is a hit. Queries whose image has no caption in the other language are left out, and pairs
    of languages without a query.

    Args:
        spoken: (M,) the language of each embedded caption.
    """
    for asking, answering in permutations(languages, 2):
        candidates = spoken == answering
        queries = (spoken == asking) & np.isin(embedded.caption_image, embedded.caption_image[candidates])
        if queries.any():
            sides = embedded.captions[queries], embedded.captions[candidates]
            owners = embedded.caption_image[queries], embedded.caption_image[candidates]
            yield f"{asking}_to_{answering}", rank_queries(*sides, *owners)


def read_pooled(
    paths: Sequence[Path], data: Manifest, pools: Pools, correction: Correction | None
) -> tuple[Embeddings, list[str]]:
    """Return the embeddings of all splits that the candidates come from, and the languages of their captions.

    Args:
        paths: embeddings of the split of the queries, and of those of distractors.
        correction: by a query bank, which the embeddings then have.

    Raises:
        UserError: a file is not of a whole split, a split is missing, or the bank has candidates of the pools.
    """
    splits, caption_splits = data.images["split"].to_numpy(str), data.captions["split"].to_numpy(str)
    parts: dict[str, Embeddings] = {}
    languages: list[str] = []
    for path in paths:
        part = read_embeddings(path)
        split = str(splits[part.image_row[0]])
        languages, parts[split] = check_pool(part, data, split, path), part
    needed = {*splits[pools.image_candidates].tolist(), *caption_splits[pools.text_candidates].tolist()}
    if missing := needed - parts.keys():
        raise UserError(f"the pools have candidates of the split '{min(missing)}'", remedy="give its embeddings, too")
    embeddings = joined(list(parts.values()))
    if correction is None:
        return embeddings, languages
    if np.isin(correction.bank.image_row, pools.image_candidates).any():
        raise UserError("the query bank has distractors of the pools", remedy="change data.pairs.distractors")
    return corrected(embeddings, *correction), languages


def pools_protocol(ranked: dict[str, QueryRanks], languages: Sequence[str]) -> list[str]:
    """Return the parts of the protocol that a comparison with other results needs."""
    i2t, t2i = ranked["i2t"], ranked["t2i"]
    return [
        f"i2t:{len(i2t.ranks)}images of {i2t.pool}captions,any own caption",
        f"t2i:{len(t2i.ranks)}captions of {t2i.pool}images",
        *("ties:pessimistic", "scores:float32", f"split:{SPLIT}", f"lang:{'+'.join(languages)}"),
    ]


def joined(parts: Sequence[Embeddings]) -> Embeddings:
    """Return the embeddings of several splits as those of one."""
    before = np.cumsum([0, *(len(part.images) for part in parts[:-1])])
    owners = [part.caption_image + first for part, first in zip(parts, before, strict=True)]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Embeddings._fields[:-1]}
    return Embeddings(**columns, caption_image=np.concatenate(owners).astype(np.int32))


def origin(embeddings: Embeddings, pools: Pools, data: Manifest) -> list[str]:
    """Return the splits of the distractors, for the protocol."""
    texts = data.captions["split"].to_numpy(str)[np.intersect1d(embeddings.caption_row, pools.text_candidates)]
    images = data.images["split"].to_numpy(str)[np.intersect1d(embeddings.image_row, pools.image_candidates)]
    others = sorted({*texts, *images} - {SPLIT})
    return [f"distractors:{(texts == o).sum()}captions and {(images == o).sum()}images of {o}" for o in others]
