"""Retrieval failures: the wrong first match beside the positive, with scores and retrieval ranks."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.offsetbox import OffsetBox
from numpy.typing import NDArray
from PIL import Image

from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.scores import Ranks
from vitcapr.progress import Reporter
from vitcapr.report import direction
from vitcapr.report.direction import Direction, Match, Show
from vitcapr.report.figures.examples import Choice
from vitcapr.report.figures.page_layout import WIDTH, cell_width, column, grid, page, paragraph, picture, row, space
from vitcapr.report.figures.style import RIGHT, TEXT_SIZE, WRONG, in_print, styled

COLUMNS = 2
_GAP, _BETWEEN = 0.24, 0.06  # inches
_CELL = cell_width(COLUMNS, _GAP)
_QUERY = 1.35  # inches: the square that an image fits
_HALF = (_CELL - 0.1) / 2


Failures = Mapping[int, Sequence[tuple[Match, int]]]
"""By the position of a query whose first match is a negative: this match and the nearest positive, with their ranks."""


def find_failures(asked: Direction, ranks: NDArray[np.integer], queries: Sequence[int]) -> Failures:
    """Return the failures of some queries, from the ranks (Q,) of the nearest positives."""
    return {
        query: [(asked.nearest(query, positive=False), 1), (asked.nearest(query, positive=True), int(ranks[query]))]
        for query in queries
    }


def draw_failures(
    data: Manifest,
    embedded: Embeddings,
    ranks: Ranks,
    choice: Choice,
    read: Callable[[int], Image.Image],
    report: Reporter,
    model: str,
) -> dict[str, Figure]:
    """``image_to_text`` and ``text_to_image``: some images and captions whose first match is a negative."""
    text = data.captions["text"].iloc[embedded.caption_row].tolist().__getitem__

    def image(position: int) -> Image.Image:
        return read(int(embedded.image_row[position]))

    images, captions = np.flatnonzero(ranks.i2t > 1), np.flatnonzero(ranks.t2i > 1)
    image_rows, caption_rows = embedded.image_row[images].tolist(), embedded.caption_row[captions].tolist()
    chosen_images = [images[image_rows.index(row)] for row in choice.choose_images(data, image_rows)]
    chosen_captions = [captions[caption_rows.index(row)] for row in choice.choose_captions(data, caption_rows)]
    of_images = find_failures(direction.image_to_text(embedded), ranks.i2t, chosen_images)
    of_captions = find_failures(direction.text_to_image(embedded), ranks.t2i, chosen_captions)
    asked = [
        _title("images", "caption", len(of_images), len(images), len(ranks.i2t), choice),
        _title("captions", "image", len(of_captions), len(captions), len(ranks.t2i), choice),
    ]
    titles = [f"{in_print(model)}: {title}" for title in asked]
    for title in titles:
        report.line(title)
    return {
        "image_to_text": image_to_text(of_images, titles[0], image, text),
        "text_to_image": text_to_image(of_captions, titles[1], image, text),
    }


@styled
def image_to_text(failures: Failures, title: str, image: Show[Image.Image], text: Show[str]) -> Figure:
    """Query images with their wrong first caption and the best of their own captions: the paper's figures 15 and 16."""
    width = _CELL - _QUERY - 0.1
    cells = []
    for query, matches in failures.items():
        texts = []
        for match, rank in matches:
            texts += [verdict(match, width, rank), paragraph(text(match.position), width), space(0.1)]
        shown = column(picture(image(query), _QUERY, _QUERY), width=_QUERY, align="center")
        cells.append(row([shown, column(*texts)], _QUERY + 0.1))
    return _sheet(cells, title)


@styled
def text_to_image(failures: Failures, title: str, image: Show[Image.Image], text: Show[str]) -> Figure:
    """Query captions with their wrong first image and their own image: the opposite direction of figures 15 and 16."""
    cells = []
    for query, matches in failures.items():
        halves = []
        for match, rank in matches:
            panel = picture(image(match.position), _HALF, _QUERY)
            halves.append(column(verdict(match, _HALF, rank), space(_BETWEEN), panel))
        cells.append(column(paragraph(text(query), _CELL), space(_BETWEEN), row(halves, _HALF + 0.1)))
    return _sheet(cells, title)


def verdict(match: Match, width: float, rank: int | None = None) -> OffsetBox:
    """Return whether a match is a positive, its rank where that is not clear, and its cosine, in its colour."""
    ranked = "" if rank is None else f"rank {rank:,}, cosine "
    return paragraph(f"{mark(match)} {ranked}{match.cosine:.2f}", width, color(match), bold=True)


def mark(match: Match) -> str:
    return "✓" if match.positive else "✗"


def color(match: Match) -> str:
    return RIGHT if match.positive else WRONG


def _title(asked: str, answer: str, count: int, failed: int, queries: int, choice: Choice) -> str:
    share = f"{failed:,} of {queries:,} {asked} retrieve a wrong {answer} (✗) first"
    return share if count == failed else f"{share}; {count} of these, {choice.note}"


def _sheet(cells: Sequence[OffsetBox], title: str) -> Figure:
    return page(paragraph(title, WIDTH, bold=True, size=TEXT_SIZE), space(0.1), grid(cells, COLUMNS, _GAP, 0.18))
