"""The queries that a retrieval model answers best and worst, for the first page."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from vitcapr.formats.embeddings import read_embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.rank_files import read_ranks_of
from vitcapr.report.direction import Direction, Show, image_to_text, text_to_image
from vitcapr.report.first_page.content import Match, Noted, Picture, Query, Retrieved
from vitcapr.report.first_page.pictures import small

QUERIES = 2
"""Shown of each kind."""
MATCHES = 3
_BLOCK = 512
Shown = Picture | str


def margins(asked: Direction) -> NDArray[np.float32]:
    """(Q,) the cosine of the nearest positive less that of the nearest negative; inf where there is no negative."""
    blocks = []
    for first in range(0, len(asked.queries), _BLOCK):
        block = slice(first, first + _BLOCK)
        cosines = asked.queries[block] @ asked.pool.T
        own = asked.query_owner[block, None] == asked.pool_owner[None]
        blocks.append(np.where(own, cosines, -np.inf).max(axis=1) - np.where(own, -np.inf, cosines).max(axis=1))
    return np.concatenate(blocks)


def best_and_worst(asked: Direction, ranks: NDArray[np.integer]) -> tuple[list[int], list[int]]:
    """Positions of the queries with rank 1 and the largest margins, and of those with the largest ranks above 1.

    An image is asked for at most once.
    """
    margin = margins(asked)
    best = [int(query) for query in np.lexsort((-margin, ranks)) if ranks[query] == 1]
    worst = [int(query) for query in np.lexsort((margin, -ranks)) if ranks[query] > 1]
    return _different(best, asked), _different(worst, asked)


def query(position: int, asked: Direction, rank: int, show_query: Show[Shown], show_match: Show[Shown]) -> Query:
    """A query with its first matches, and with its nearest positive, of this rank, if that is not among them."""
    ranked = list(enumerate(asked.first(position, MATCHES), 1))
    if not any(match.positive for _, match in ranked):
        ranked.append((rank, asked.nearest(position, positive=True)))
    matches = [Match(show_match(each.position), each.cosine, place, each.positive) for place, each in ranked]
    return Query(show_query(position), matches)


def retrieved(
    data: Manifest,
    split: str,
    summary: pd.DataFrame,
    embeddings: Mapping[str, Path],
    ranks: Mapping[str, Path],
    read: Callable[[int], Image.Image],
) -> Noted[list[Retrieved]] | None:
    """The best and the worst queries of both directions, of the model with the highest R@1."""
    if not embeddings:
        return None
    name = highest_recall(summary, list(embeddings), split)
    embedded = read_embeddings(embeddings[name], data, split)
    rank = read_ranks_of(ranks[name], embedded).ranks
    ids = data.images["image_id"].tolist()
    text = data.captions["text"].iloc[embedded.caption_row].tolist().__getitem__

    def picture(position: int) -> Picture:
        row = int(embedded.image_row[position])
        return small(read(row), f"image {ids[row]}")

    ways: list[tuple[str, Direction, NDArray[np.integer], Show[Shown], Show[Shown]]] = [
        ("From text to image", text_to_image(embedded), rank.t2i, text, picture),
        ("From image to text", image_to_text(embedded), rank.i2t, picture, text),
    ]
    sections = []
    for title, asked, true_rank, show_query, show_match in ways:
        best, worst = (
            [query(position, asked, int(true_rank[position]), show_query, show_match) for position in positions]
            for positions in best_and_worst(asked, true_rank)
        )
        sections.append(Retrieved(title, best, worst))
    which = f": of {len(embeddings)} models, the one with the highest R@1 there." if len(embeddings) > 1 else "."
    note = (
        f"The model {name}, on the {split} split{which} Best: the true match is first and the nearest wrong one is far "
        "behind. Worst: the true match is far behind."
    )
    return Noted(sections, note)


def highest_recall(summary: pd.DataFrame, names: list[str], split: str) -> str:
    """The model with the highest sum of both R@1 on ``split``; of equal ones, and without scores, the first."""
    part = summary[(summary["split"] == split) & summary["metric"].isin(["i2t_recall_1", "t2i_recall_1"])]
    sums = part.groupby("model")["value"].sum()
    return max(names, key=lambda name: float(sums.get(name, -1.0)))


def _different(queries: list[int], asked: Direction) -> list[int]:
    first = {int(asked.query_owner[query]): query for query in reversed(queries)}
    return [query for query in queries if first[int(asked.query_owner[query])] == query][:QUERIES]
