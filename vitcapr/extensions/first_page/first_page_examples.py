"""Examples of the first page.

They are pictures with captions and attention, the queries that a model answers best and worst, and training curves.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from vitcapr.extensions.first_page.index_page import Noted, Picture, small
from vitcapr.formats.captions import read_attention, read_captions
from vitcapr.formats.claims import Claim
from vitcapr.formats.embeddings import read_embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.scores import RankFile
from vitcapr.formats.tables import Table
from vitcapr.metrics.captions.diversity import loops
from vitcapr.metrics.seed_spread import Seeded, paired, spread
from vitcapr.report.attended import encoded
from vitcapr.report.direction import Direction, Match, Show, image_to_text, text_to_image
from vitcapr.report.figures.curves import draw_histories
from vitcapr.report.figures.examples import Choice, choose_attended, read_captioned, rows_of_split
from vitcapr.report.figures.style import png_bytes
from vitcapr.report.score_tables import spread_tables

_CURVE_DPI = 140
QUERIES = 2
"""Shown of each kind."""
MATCHES = 3
Shown = Picture | str


class Query(NamedTuple):
    """A query, its first matches with their ranks, and the nearest positive if that is not among them."""

    shown: Shown
    matches: list[tuple[Shown, Match, int]]


def seed_tables(summary: pd.DataFrame, models: Mapping[str, Seeded]) -> list[Table]:
    """Mean and spread over the seeds of each model, and models in pairs; none without models of several seeds."""
    return spread_tables(spread(summary, models), paired(summary, models)) if models else []


def looked(
    data: Manifest,
    split: str,
    captions: Mapping[str, Path],
    attention: Mapping[str, Path],
    read: Callable[[int], Image.Image],
) -> dict[str, Any] | None:
    """Return an image, and where the first system with stored attention looked at each word of its caption."""
    name = next((name for name in attention if name in captions), None)
    if name is None:
        return None
    row, caption, weights = choose_attended(data, split, captions[name], read_attention(attention[name]), Choice(1))[0]
    written = read_captions(captions[name]).values()
    looping = sum(loops(each.tokens) for each in written)
    return {
        "picture": small(read(row), f"image {caption.image_id}", caption.image_id),
        "words": caption.tokens,
        "attention": encoded(weights),
        "note": f"Where {name} looked at each word of “{caption.caption}”, a caption of about the median length. "
        f"{looping or 'None'} of its {len(written):,} captions {'loops' if looping == 1 else 'loop'}.",
    }


def training_pictures(histories: Mapping[str, Path], cards: Mapping[str, Path]) -> list[Picture]:
    """Return the training curves of each kind of model.

    Args:
        histories: by the kind and the name of the model, such as ``captioners/plain``.
    """
    return [
        Picture(png_bytes(figure, _CURVE_DPI), f"Training curves of the {kind.replace('_', ' ')}", "png")
        for kind, figure in draw_histories(histories, cards).items()
    ]


def captioned(
    data: Manifest,
    split: str,
    language: str,
    captions: Mapping[str, Path],
    bases: Mapping[str, str],
    choice: Choice,
    read: Callable[[int], Image.Image],
    attention: Mapping[str, Path] = MappingProxyType({}),
    claims: Mapping[str, Mapping[str, Sequence[Claim]]] = MappingProxyType({}),
) -> Noted[list[dict[str, Any]]] | None:
    """Images of a split with the caption of every system. Wrong words are marked, and those that a reranking changed.

    Args:
        language: of the references.
        captions: the captions by system; without any, there is no such section.
        bases: for each reranking, the system whose captions it reorders.
        read: the image of a row.
        attention: of the systems that stored it; their captions play word by word.
        claims: for some systems, the claims of the caption of each image.
    """
    if not captions:
        return None
    tables = {name: read_attention(path) for name, path in attention.items() if name in captions}
    systems = {name: read_captions(path) for name, path in captions.items()}
    bases = {name: base for name, base in bases.items() if {name, base} <= systems.keys()}
    rows, ids = rows_of_split(data, split, systems), data.images["image_id"].tolist()
    chosen = choice.choose_images(data, rows)
    note = f"{len(chosen)} of {len(rows):,} images of the {split} split, {choice.note}."
    if bases:
        pairs = [(systems[name], systems[base]) for name, base in bases.items()]
        changed = {r for r in rows if any(new[ids[r]].tokens != old[ids[r]].tokens for new, old in pairs)}
        note += (
            f" Reranking changed a caption of {len(changed):,} of the {len(rows):,} images, and of "
            f"{len(changed.intersection(chosen))} of the {len(chosen)} below. "
            "Struck through: removed words; underlined: added words."
        )
    if claims:
        note += " A red wave underlines wrong words: point at one, or reach it with the Tab key, to read what is true."
    if tables:
        note += ' Point at a word of a caption with a button "play" to see where the captioner looked.'
        note += " The brighter, the more attention; the line encloses half of it."
    read_examples = read_captioned(data, split, language, systems, chosen, read, bases, claims)
    examples = []
    for row, one in zip(chosen, read_examples, strict=True):
        weights = {name: table.of_row(row) for name, table in tables.items()}
        examples.append(
            {
                "picture": small(one.image, one.reference or f"image {ids[row]}", ids[row]),
                "captions": one.captions,
                "attention": {
                    name: encoded(each)
                    for name, each in weights.items()
                    if each is not None and len(each) == sum(run.change != "del" for run in one.captions[name])
                },
                "reference": one.reference,
            }
        )
    return Noted(examples, note)


def best_and_worst(asked: Direction, ranks: NDArray[np.integer]) -> tuple[list[int], list[int]]:
    """Positions of the queries with rank 1 and the largest margins, and of those with the largest ranks above 1.

    The margin is the cosine of the nearest positive minus that of the nearest negative. An image is asked for at most
    once.
    """
    margin = np.subtract(*asked.nearest_cosines())
    best = [int(query) for query in np.lexsort((-margin, ranks)) if ranks[query] == 1]
    worst = [int(query) for query in np.lexsort((margin, -ranks)) if ranks[query] > 1]
    return _different(best, asked), _different(worst, asked)


def query(position: int, asked: Direction, rank: int, show_query: Show[Shown], show_match: Show[Shown]) -> Query:
    """Return a query with its first matches, and with its nearest positive, of this rank, if that is not among them."""
    ranked = list(enumerate(asked.first(position, MATCHES), 1))
    if not any(match.positive for _, match in ranked):
        ranked.append((rank, asked.nearest(position, positive=True)))
    return Query(show_query(position), [(show_match(match.position), match, place) for place, match in ranked])


def retrieved(
    data: Manifest,
    split: str,
    summary: pd.DataFrame,
    embeddings: Mapping[str, Path],
    ranks: Mapping[str, Path],
    read: Callable[[int], Image.Image],
) -> Noted[list[dict[str, Any]]] | None:
    """Return the best and the worst queries of both directions, of the model with the highest R@1."""
    if not embeddings:
        return None
    name = highest_recall(summary, list(embeddings), split)
    embedded = read_embeddings(embeddings[name], data, split)
    rank = RankFile.read(ranks[name], embedded).ranks
    ids = data.images["image_id"].tolist()
    text = data.captions["text"].iloc[embedded.caption_row].tolist().__getitem__

    def picture(position: int) -> Picture:
        row = int(embedded.image_row[position])
        return small(read(row), f"image {ids[row]}", ids[row])

    directions: list[tuple[str, Direction, NDArray[np.integer], Show[Shown], Show[Shown]]] = [
        ("From text to image", text_to_image(embedded), rank.t2i, text, picture),
        ("From image to text", image_to_text(embedded), rank.i2t, picture, text),
    ]
    sections = []
    for title, asked, true_rank, show_query, show_match in directions:
        best, worst = (
            [query(position, asked, int(true_rank[position]), show_query, show_match) for position in positions]
            for positions in best_and_worst(asked, true_rank)
        )
        sections.append({"title": title, "best": best, "worst": worst})
    which = f", the highest sum of both R@1 of {len(embeddings)} models" if len(embeddings) > 1 else ""
    note = (
        f"Model: {name}{which}; {split} split. Best: the true match is first and the nearest wrong one is far "
        "behind. Worst: the true match is far behind."
    )
    return Noted(sections, note)


def highest_recall(summary: pd.DataFrame, names: list[str], split: str) -> str:
    """Return the model with the highest sum of both R@1 on ``split``; of equal ones, and without scores, the first."""
    part = summary[(summary["split"] == split) & summary["metric"].isin(["i2t_recall_1", "t2i_recall_1"])]
    sums = part.groupby("model")["value"].sum()
    return max(names, key=lambda name: float(sums.get(name, -1.0)))


def _different(queries: list[int], asked: Direction) -> list[int]:
    first = {int(asked.query_owner[query]): query for query in reversed(queries)}
    return [query for query in queries if first[int(asked.query_owner[query])] == query][:QUERIES]
