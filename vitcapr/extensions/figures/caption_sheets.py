"""Sheets of images with the captions of several systems and a reference."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.offsetbox import OffsetBox

from vitcapr.formats.captions import read_captions
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.candidates import candidate_ciders
from vitcapr.metrics.caption_metric import is_oracle, references_of
from vitcapr.progress import Reporter
from vitcapr.report.figures.examples import Captioned, Choice, Run, mark_words, open_images, rows_of_split
from vitcapr.report.figures.page_layout import (
    STRUCK,
    UNDERLINED,
    WIDTH,
    Word,
    cell_width,
    column,
    flow,
    grid,
    height_of,
    page,
    paragraph,
    picture,
    space,
)
from vitcapr.report.figures.style import BLUE, FAINT, FALSE, SERIES, WRONG, styled

COLUMNS = 4
_GAP, _BETWEEN = 0.16, 0.05  # inches
_CELL = cell_width(COLUMNS, _GAP)
_HEIGHT = 11.4  # inches of A4
_LOOKS = {"": Word(""), "del": Word("", WRONG, STRUCK), "ins": Word("", BLUE, UNDERLINED)}


@styled
def caption_sheet(examples: Sequence[Captioned], note: str) -> list[Figure]:
    """Pages of at most A4 with four images a row. Equal captions stand once, under the names of all their systems.

    Words that a reranking removed are struck through; those that it added are underlined, and wrong ones in red.
    """
    pages, blocks, room = [], list[OffsetBox](), _HEIGHT
    head = paragraph(note, WIDTH, FAINT)
    for first in range(0, len(examples), COLUMNS):
        cells = examples[first : first + COLUMNS]
        panels = [picture(example.image, _CELL, _CELL) for example in cells]
        line = grid(panels, COLUMNS, _GAP, _GAP, [_texts(example) for example in cells])
        if blocks and height_of(line) + _GAP > room - height_of(head):
            pages.append(blocks)
            blocks, room = [], _HEIGHT
        blocks += [space(_GAP), line]
        room -= height_of(line) + _GAP
    return [page(*([] if number else [head]), *each) for number, each in enumerate([*pages, blocks])]


def _texts(example: Captioned) -> OffsetBox:
    """Return the captions and the reference under an image; those that a page has no room for are counted."""
    # Flickr8k's captions have a space before a full stop.
    groups: dict[tuple[Run, ...], list[OffsetBox]] = {}
    for number, (title, runs) in enumerate(example.captions.items()):
        squares = [Word("■", SERIES[number % len(SERIES)])] if len(example.captions) > 1 else []
        groups.setdefault(tuple(runs), []).append(flow([*squares, Word(title)], _CELL, bold=True))
    reference = re.sub(r"\s+([.,;:!?])", r"\1", example.reference)
    cells = [
        column(space(_BETWEEN), *titles, flow([_word(run) for run in runs], _CELL)) for runs, titles in groups.items()
    ]
    last = column(space(_BETWEEN), paragraph("reference", _CELL, FAINT, bold=True), paragraph(reference, _CELL))
    room = _HEIGHT - _CELL - 2 * _GAP - 4 * _BETWEEN - height_of(last)
    count = sum(height < room for height in accumulate(map(height_of, cells)))
    left = [paragraph(f"… and {len(cells) - count} more captions", _CELL, FAINT)] if count < len(cells) else []
    return column(*cells[:count], *left, last)


def _word(run: Run) -> Word:
    look = _LOOKS[run.change]
    return replace(look, text=run.text, mark=UNDERLINED, line=FALSE) if run.truth else replace(look, text=run.text)


def draw_changed(
    data: Manifest, split: str, language: str, before: Path, after: Path, choice: Choice, report: Reporter
) -> list[Figure]:
    """Return a sheet of images whose caption a reranking changed, with the CIDEr of both captions."""
    old, new = read_captions(before), read_captions(after)
    rows = rows_of_split(data, split, {"the decoding": old, "the reranking": new})
    images = data.images["image_id"].iloc[rows].tolist()
    every = references_of(data, split, language)
    references = {image: every[image] for image in images}
    both = {image: (old[image].caption, new[image].caption) for image in images}
    ciders = dict(zip(images, candidate_ciders(both, references, language), strict=True))
    changed = {row: image for row, image in zip(rows, images, strict=True) if both[image][0] != both[image][1]}
    examples = []
    with open_images(data) as read:
        for row in choice.choose_images(data, list(changed)):
            image = changed[row]
            title = "CIDEr {:.0f} → {:.0f}".format(*(100 * ciders[image]))
            runs = mark_words(new[image].tokens, before=old[image].tokens)
            examples.append(Captioned(read(row), {title: runs}, references[image][0]))
    gains = [ciders[image][1] - ciders[image][0] for image in changed.values()]
    rose, fell = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    note = (
        f"{len(examples)} of the {len(gains)} images (of {len(rows)}) whose caption reranking changed, {choice.note}. "
        f"Of the {len(gains)}, CIDEr rose for {rose}, fell for {fell} and is unchanged for {len(gains) - rose - fell}. "
        "Struck through: removed words; underlined: added words."
    )
    if not changed:
        note = f"Reranking changed no caption of {len(rows)} images."
    if is_oracle(new.values()):
        note = f"Chosen by an oracle from the references: a ceiling, not a result. {note}"
    report.line(note)
    return caption_sheet(examples, note)
