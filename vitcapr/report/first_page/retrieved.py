"""The queries that a retrieval model answers best and worst, for the first page."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.scores import Ranks
from vitcapr.report.first_page.content import Match, Picture, Query, Retrieved
from vitcapr.report.first_page.pictures import small

QUERIES = 2
"""Shown of each kind."""
MATCHES = 3
_BLOCK = 512


Show = Callable[[int], Picture | str]
"""What is shown of the image or caption at a position of the embeddings."""


class Direction(NamedTuple):
    """One direction of retrieval.

    Attributes:
        queries: (Q, E); pool: (P, E). Unit vectors.
        query_owner: (Q,), pool_owner: (P,). A match is a positive where both have the same owner.
        ranks: (Q,), of the nearest positive.
    """

    queries: NDArray[np.float32]
    pool: NDArray[np.float32]
    query_owner: NDArray[np.integer]
    pool_owner: NDArray[np.integer]
    ranks: NDArray[np.integer]


def directions(embedded: Embeddings, ranks: Ranks) -> tuple[Direction, Direction]:
    """Text to image, and image to text."""
    own = np.arange(len(embedded.images))
    return (
        Direction(embedded.captions, embedded.images, embedded.caption_image, own, ranks.t2i),
        Direction(embedded.images, embedded.captions, own, embedded.caption_image, ranks.i2t),
    )


def margins(asked: Direction) -> NDArray[np.float32]:
    """(Q,) the cosine of the nearest positive less that of the nearest negative; inf where there is no negative."""
    found = []
    for first in range(0, len(asked.queries), _BLOCK):
        block = slice(first, first + _BLOCK)
        cosines = asked.queries[block] @ asked.pool.T
        own = asked.query_owner[block, None] == asked.pool_owner[None]
        found.append(np.where(own, cosines, -np.inf).max(axis=1) - np.where(own, -np.inf, cosines).max(axis=1))
    return np.concatenate(found)


def best_and_worst(asked: Direction) -> tuple[list[int], list[int]]:
    """Positions of the queries with rank 1 and the largest margins, and of those with the largest ranks above 1.

    An image is asked for at most once.
    """
    margin = margins(asked)
    order = np.lexsort((-margin, asked.ranks))
    best = [int(query) for query in order if asked.ranks[query] == 1]
    worst = [int(query) for query in np.lexsort((margin, -asked.ranks)) if asked.ranks[query] > 1]
    return _different(best, asked), _different(worst, asked)


def query(position: int, asked: Direction, show_query: Show, show_match: Show) -> Query:
    """A query with its first matches, and with its nearest positive if that is not among them."""
    cosines = asked.pool @ asked.queries[position]
    own = asked.pool_owner == asked.query_owner[position]
    order = np.argsort(-cosines, kind="stable")[:MATCHES]
    matches = [
        Match(show_match(int(place)), float(cosines[place]), rank, bool(own[place]))
        for rank, place in enumerate(order, 1)
    ]
    if not own[order].any():
        true = int(np.where(own, cosines, -np.inf).argmax())
        matches.append(Match(show_match(true), float(cosines[true]), int(asked.ranks[position]), True))
    return Query(show_query(position), matches)


def retrieved(
    data: Manifest, embedded: Embeddings, ranks: Ranks, read: Callable[[int], Image.Image]
) -> list[Retrieved]:
    """The best and the worst queries of both directions.

    Args:
        read: the picture of an image row.
    """
    ids = data.images["image_id"].tolist()
    text = data.captions["text"].iloc[embedded.caption_row].tolist().__getitem__

    def picture(position: int) -> Picture:
        row = int(embedded.image_row[position])
        return small(read(row), f"image {ids[row]}")

    found = []
    both = zip(("From text to image", "From image to text"), directions(embedded, ranks), strict=True)
    shows: list[tuple[Show, Show]] = [(text, picture), (picture, text)]
    for (title, asked), (show_query, show_match) in zip(both, shows, strict=True):
        best, worst = (
            [query(position, asked, show_query, show_match) for position in positions]
            for positions in best_and_worst(asked)
        )
        found.append(Retrieved(title, best, worst))
    return found


def highest_recall(summary: pd.DataFrame, names: list[str], split: str) -> str:
    """The model with the highest sum of both R@1 on ``split``; of equal ones, and without scores, the first."""
    part = summary[(summary["split"] == split) & summary["metric"].isin(["i2t_recall_1", "t2i_recall_1"])]
    sums = part.groupby("model")["value"].sum()
    return max(names, key=lambda name: float(sums.get(name, -1.0)))


def note_on_model(name: str, split: str, models: int) -> str:
    """The note on the model and on the choice of its queries."""
    which = f": of {models} models, the one with the highest R@1 there." if models > 1 else "."
    return (
        f"The model {name}, on the {split} split{which} Best: the true match is first and the nearest wrong one is far "
        "behind. Worst: the true match is far behind."
    )


def _different(queries: list[int], asked: Direction) -> list[int]:
    chosen: dict[int, int] = {}
    for one in queries:
        chosen.setdefault(int(asked.query_owner[one]), one)
        if len(chosen) == QUERIES:
            break
    return list(chosen.values())
