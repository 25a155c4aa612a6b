"""The first results of several models for one random query, side by side, with positives marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.report.direction import Direction, Show, image_to_text, text_to_image
from vitcapr.report.figures.embeddings import spaces
from vitcapr.report.figures.examples import open_images
from vitcapr.report.figures.fonts import printable
from vitcapr.report.figures.layout import LINE, MARGIN, TEXT_LINE, fit, place_picture, wrap, write
from vitcapr.report.figures.style import (
    FAINT,
    GREEN,
    INK,
    PAGE_WIDTH,
    SMALL_TEXT_SIZE,
    TEXT_SIZE,
    VERMILION,
    new_figure,
    styled,
)
from vitcapr.report.figures.text import language_name

DEPTH = 5
"""Matches shown, as in the tables 5 and 6 of the second paper."""
_GAP, _BETWEEN = 0.12, 0.05  # inches
_HEADING = TEXT_LINE + 0.04
_QUERY = 1.6  # inches: the width of a query's image
_CELL = (PAGE_WIDTH - 2 * MARGIN - (DEPTH - 1) * _BETWEEN) / DEPTH
_TALLEST = 1.0

Shown = TypeVar("Shown")


@dataclass(frozen=True)
class Found(Generic[Shown]):
    """A match: its image or text, its cosine, and whether it is a positive."""

    shown: Shown
    cosine: float
    positive: bool

    @property
    def mark(self) -> str:
        return "✓" if self.positive else "✗"

    @property
    def color(self) -> str:
        return GREEN if self.positive else VERMILION


def draw_systems(
    data: Manifest, systems: Mapping[str, Embeddings], split: str, seed: int
) -> tuple[dict[str, Figure], str]:
    """The figures ``top_captions``, ``top_images`` and ``spaces``, and the matches of the first two in Markdown.

    Args:
        seed: selects the image and the caption.
    """
    check_same_rows(systems)
    first = next(iter(systems.values()))
    image, caption = random_queries(first, seed)
    of_image, of_caption = notes_on_choice(data, first, split, seed)
    text = data.captions["text"].iloc[first.caption_row].tolist()
    ids = data.images["image_id"].iloc[first.image_row].tolist()
    references = [each for each, owner in zip(text, first.caption_image, strict=True) if owner == image]
    to_image = {name: text_to_image(embedded) for name, embedded in systems.items()}
    captions = first_matches({name: image_to_text(each) for name, each in systems.items()}, image, text.__getitem__)
    named = first_matches(to_image, caption, ids.__getitem__)
    with open_images(data) as read:
        images = first_matches(to_image, caption, lambda position: read(int(first.image_row[position])))
        figures = {
            "top_captions": captions_side_by_side(read(int(first.image_row[image])), references, captions, of_image),
            "top_images": images_side_by_side(text[caption], images, of_caption),
            "spaces": spaces(systems),
        }
    return figures, found_table(of_image, ids[image], captions) + "\n" + found_table(of_caption, text[caption], named)


def first_matches(directions: Mapping[str, Direction], query: int, show: Show[Shown]) -> dict[str, list[Found[Shown]]]:
    """The first matches of a query, by system."""
    return {
        name: [Found(show(match.position), match.cosine, match.positive) for match in direction.first(query, DEPTH)]
        for name, direction in directions.items()
    }


def check_same_rows(systems: Mapping[str, Embeddings]) -> None:
    """Refuse systems that embed other images or captions than the first."""
    first = next(iter(systems.values()))
    for name, other in systems.items():
        same = (np.array_equal(getattr(other, rows), getattr(first, rows)) for rows in ("image_row", "caption_row"))
        if not all(same):
            raise UserError(f"the embeddings of '{name}' are of other images or captions than the first")


def random_queries(embeddings: Embeddings, seed: int) -> tuple[int, int]:
    """The positions of an image and of a caption."""
    generator = np.random.default_rng(seed)
    return int(generator.integers(len(embeddings.images))), int(generator.integers(len(embeddings.captions)))


def notes_on_choice(data: Manifest, embeddings: Embeddings, split: str, seed: int) -> tuple[str, str]:
    """The notes on the pool and on the selection of the query, for the query image and the query caption."""
    languages = data.captions["language"].iloc[embeddings.caption_row].unique()
    named = f" in {' and '.join(map(language_name, languages))}" if data.captions["language"].nunique() > 1 else ""
    chosen = f"of the {split} split, with cosines; the query is drawn at random with seed {seed}"
    return (
        f"The first captions{named} among {len(embeddings.captions):,} {chosen}",
        f"The first images among {len(embeddings.images):,} {chosen}",
    )


def found_table(title: str, query: str, found: Mapping[str, Sequence[Found[str]]]) -> str:
    """The matches of each model in Markdown, which needs no font."""
    lines = [
        f"**{title}**",
        "",
        f"Query: {query}",
        "",
        "| model | | cosine | | found |",
        "| --- | ---: | ---: | --- | --- |",
    ]
    for name, matches in found.items():
        for place, match in enumerate(matches, 1):
            cell = match.shown.replace("|", "\\|")
            lines.append(f"| {name} | {place} | {match.cosine:.2f} | {match.mark} | {cell} |")
    return "\n".join(lines) + "\n"


@styled
def captions_side_by_side(
    picture: Image.Image, references: Sequence[str], found: Mapping[str, Sequence[Found[str]]], note: str
) -> Figure:
    """An image with its own captions, and under each model the captions that it finds first.

    Args:
        references: the image's own captions.
        found: by the model's name.
        note: how the query was chosen.
    """
    width = (PAGE_WIDTH - 2 * MARGIN - _QUERY - _GAP) * 72
    lines: list[tuple[str, bool, str]] = [("its own captions", True, INK)]
    for text in references:
        lines += [(part, False, FAINT) for part in wrap(text, width, SMALL_TEXT_SIZE)]
    for name, matches in found.items():
        lines += [("", False, INK), (name, True, INK)]
        for place, match in enumerate(matches, 1):
            text = f"{place}. {match.mark} {match.cosine:.2f}  {printable(match.shown)}"
            lines += [(part, False, match.color) for part in wrap(text, width, SMALL_TEXT_SIZE)]
    tall = _QUERY * picture.height / picture.width
    figure, top = _page(max(tall, len(lines) * LINE), note)
    place_picture(figure, picture, MARGIN, top - tall, (_QUERY, tall))
    for number, (text, bold, color) in enumerate(lines):
        write(figure, text, MARGIN + _QUERY + _GAP, top - number * LINE, color=color, bold=bold)
    return figure


@styled
def images_side_by_side(query: str, found: Mapping[str, Sequence[Found[Image.Image]]], note: str) -> Figure:
    """A caption, and for each model a row of the images that it finds first."""
    asked = wrap(query, (PAGE_WIDTH - 2 * MARGIN) * 72, TEXT_SIZE)
    row = LINE + _BETWEEN + _TALLEST + LINE + _GAP
    figure, top = _page(len(asked) * _HEADING + len(found) * row, note)
    for part in asked:
        write(figure, part, MARGIN, top, bold=True, size=TEXT_SIZE)
        top -= _HEADING
    for name, matches in found.items():
        write(figure, name, MARGIN, top, bold=True)
        for column, match in enumerate(matches):
            size = fit(match.shown, _CELL, _TALLEST)
            left = MARGIN + column * (_CELL + _BETWEEN)
            under = top - LINE - _BETWEEN
            axes = place_picture(figure, match.shown, left, under - size[1], size)
            axes.set_axis_on()
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(visible=True, color=match.color, linewidth=1.5)
            text = f"{match.mark} {match.cosine:.2f}"
            write(figure, text, left, under - _TALLEST - _BETWEEN, color=match.color, bold=True)
        top -= row
    return figure


def _page(height: float, note: str) -> tuple[Figure, float]:
    """A page with the note at its head, and the top of what is ``height`` inches high under it."""
    lines = wrap(note, (PAGE_WIDTH - 2 * MARGIN) * 72, SMALL_TEXT_SIZE)
    head = _HEADING + (len(lines) - 1) * LINE
    figure = new_figure(PAGE_WIDTH, 2 * MARGIN + head + height)
    for number, line in enumerate(lines):
        write(figure, line, MARGIN, MARGIN + head + height - number * LINE, color=FAINT)
    return figure, MARGIN + height
