"""The first results of several models for one query, side by side, with positives marked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from vitcapr.errors import UserError
from vitcapr.extensions.figures.embedding_figures import spaces
from vitcapr.extensions.figures.retrieved import color, mark, verdict
from vitcapr.formats.embeddings import Embeddings, read_embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.pair_files import read_pools
from vitcapr.metrics.pools import read_pooled, split_pools
from vitcapr.report.direction import Match, Show, image_to_text, text_to_image
from vitcapr.report.figures.examples import Choice, open_images
from vitcapr.report.figures.lengths import language_name
from vitcapr.report.figures.page_layout import WIDTH, cell_width, column, page, paragraph, picture, row, space
from vitcapr.report.figures.style import FAINT, TEXT_SIZE, printable, styled

DEPTH = 5
"""Number of matches, as in the tables 5 and 6 of the second paper."""
_GAP, _BETWEEN = 0.12, 0.05  # inches
_QUERY = 1.6  # inches: the width of a query's image
_CELL = cell_width(DEPTH, _BETWEEN)

Matches = Mapping[str, Sequence[Match]]
"""The first matches of a query, by system."""


class Searched(NamedTuple):
    """Query images with their retrieved captions, and query captions with their images, of one system."""

    by_image: Embeddings
    by_caption: Embeddings


def read_searched(paths: Sequence[Path], data: Manifest, split: str, pools: Path | None) -> Searched:
    """Read the results of the pools, or of a split.

    Args:
        paths: the embeddings of the split; of pools, those of all splits that the candidates come from.
    """
    if pools is not None:
        queries = read_pools(pools)
        return Searched(*split_pools(read_pooled(paths, data, queries, None)[0], queries))
    (path,) = paths
    whole = read_embeddings(path, data, split)
    return Searched(whole, whole)


def draw_systems(
    data: Manifest, systems: Mapping[str, Searched], place: str, choice: Choice
) -> tuple[dict[str, Figure], str]:
    """Return the figures ``top_captions``, ``top_images`` and ``spaces``, and the matches of the first two in Markdown.

    Args:
        place: where the queries and the candidates are from.
    """
    by_image = {name: each.by_image for name, each in systems.items()}
    by_caption = {name: each.by_caption for name, each in systems.items()}
    check_same_rows(by_image)
    check_same_rows(by_caption)
    asked, answered = next(iter(systems.values()))
    image_row = choice.choose_images(data, asked.image_row.tolist())[0]
    caption_row = choice.choose_captions(data, answered.caption_row.tolist())[0]
    image, caption = asked.image_row.tolist().index(image_row), answered.caption_row.tolist().index(caption_row)
    of_image, of_caption = _notes(data, asked, answered, place, choice)
    text = data.captions["text"].iloc[asked.caption_row].tolist()
    query, image_id = data.captions["text"].iloc[caption_row], data.images["image_id"].iloc[image_row]
    ids = data.images["image_id"].iloc[answered.image_row].tolist()
    references = [each for each, owner in zip(text, asked.caption_image, strict=True) if owner == image]
    captions = {name: image_to_text(each).first(image, DEPTH) for name, each in by_image.items()}
    images = {name: text_to_image(each).first(caption, DEPTH) for name, each in by_caption.items()}
    with open_images(data) as read:

        def show(position: int) -> Image.Image:
            return read(int(answered.image_row[position]))

        figures = {
            "top_captions": captions_side_by_side(read(image_row), references, captions, text.__getitem__, of_image),
            "top_images": images_side_by_side(query, images, show, of_caption),
            "spaces": spaces(by_image),
        }
    tables = [
        matches_table(of_image, image_id, captions, text.__getitem__),
        matches_table(of_caption, query, images, ids.__getitem__),
    ]
    return figures, "\n".join(tables)


def check_same_rows(systems: Mapping[str, Embeddings]) -> None:
    """Refuse systems that embed other images or captions than the first."""
    first = next(iter(systems.values()))
    for name, other in systems.items():
        same = (np.array_equal(getattr(other, rows), getattr(first, rows)) for rows in ("image_row", "caption_row"))
        if not all(same):
            raise UserError(f"the embeddings of '{name}' are of other images or captions than the first")


def _notes(data: Manifest, asked: Embeddings, answered: Embeddings, place: str, choice: Choice) -> tuple[str, str]:
    """Return the notes on the pool and on the choice of the query, for the query image and the query caption."""
    languages = data.captions["language"].iloc[asked.caption_row].unique()
    named = f" in {' and '.join(map(language_name, languages))}" if data.captions["language"].nunique() > 1 else ""
    chosen = f"{place}, with cosines. Query: {choice.note}"
    return (
        f"The first captions{named} among {len(asked.captions):,} {chosen}",
        f"The first images among {len(answered.images):,} {chosen}",
    )


def matches_table(title: str, query: str, matches: Matches, show: Show[str]) -> str:
    """Return the matches of each model in Markdown, which needs no font."""
    lines = [f"**{title}**", "", f"Query: {query}", ""]
    lines += ["| model | | cosine | | match |", "| --- | ---: | ---: | --- | --- |"]
    for name, several in matches.items():
        for place, match in enumerate(several, 1):
            cell = show(match.position).replace("|", "\\|")
            lines.append(f"| {name} | {place} | {match.cosine:.2f} | {mark(match)} | {cell} |")
    return "\n".join(lines) + "\n"


@styled
def captions_side_by_side(
    image: Image.Image, references: Sequence[str], matches: Matches, show: Show[str], note: str
) -> Figure:
    """Return an image with its own captions, and under each model the captions that it retrieves first."""
    width = WIDTH - _QUERY - _GAP
    texts = [paragraph("captions of the image", width, bold=True)]
    texts += [paragraph(text, width, FAINT) for text in references]
    for name, several in matches.items():
        texts += [space(_GAP), paragraph(name, width, bold=True)]
        for place, match in enumerate(several, 1):
            line = f"{place}. {mark(match)} {match.cosine:.2f}  {printable(show(match.position))}"
            texts.append(paragraph(line, width, color(match)))
    query = picture(image, _QUERY, 3 * _QUERY)
    return page(paragraph(note, WIDTH, FAINT), space(_BETWEEN), row([query, column(*texts)], _QUERY + _GAP))


@styled
def images_side_by_side(query: str, matches: Matches, show: Show[Image.Image], note: str) -> Figure:
    """Return a caption, and for each model a row of the images that it retrieves first."""
    blocks = [paragraph(note, WIDTH, FAINT), paragraph(query, WIDTH, bold=True, size=TEXT_SIZE)]
    for name, several in matches.items():
        cells = []
        for match in several:
            panel = picture(show(match.position), _CELL, 1.0, frame=color(match))
            cells.append(column(panel, space(_BETWEEN), verdict(match, _CELL)))
        blocks += [space(_GAP), paragraph(name, WIDTH, bold=True), space(_BETWEEN), row(cells, _CELL + _BETWEEN)]
    return page(*blocks)
