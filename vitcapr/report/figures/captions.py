"""Sheets of images with captions: of several systems with a reference, or before and after reranking."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from vitcapr.formats.captions import DecodedCaption, read_captions, read_results
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.base import is_oracle
from vitcapr.metrics.candidates import system_ciders
from vitcapr.progress import Reporter
from vitcapr.report.figures.examples import Choice, Run, first_references, mark_changes, open_images, rows_of_split
from vitcapr.report.figures.page import (
    STRUCK,
    UNDERLINED,
    WIDTH,
    Block,
    Column,
    Space,
    Word,
    cell_width,
    fitted,
    flow,
    grid,
    page,
    paragraph,
)
from vitcapr.report.figures.style import BLUE, FAINT, SERIES, VERMILION, styled

COLUMNS = 4
_TIMEOUT = 300.0
"""Seconds for the tokenizer."""
_GAP, _BETWEEN = 0.16, 0.05  # inches
_CELL = cell_width(COLUMNS, _GAP)
_LOOKS = {"": Word(""), "del": Word("", VERMILION, STRUCK), "ins": Word("", BLUE, UNDERLINED)}
_NOTHING = Run("(nothing)")


@dataclass(frozen=True)
class Captioned:
    """An image, what stands under it with the title of each text, and one reference."""

    image: Image.Image
    captions: Mapping[str, Sequence[Run]]
    reference: str


@styled
def caption_sheet(examples: Sequence[Captioned], note: str) -> Figure:
    """Four images a row at the width of a page, as high as the captions need.

    Words that a reranking removed are struck through; those that it added are underlined.
    """
    texts = []
    for example in examples:
        blocks: list[Block] = []
        # Flickr8k's captions have a space before a full stop.
        reference = re.sub(r"\s+([.,;:!?])", r"\1", example.reference)
        captions = {**example.captions, "reference": [Run(reference)]}
        for number, (title, runs) in enumerate(captions.items()):
            color = FAINT if title == "reference" else SERIES[number % len(SERIES)]
            text = flow([replace(_LOOKS[run.change], text=run.text) for run in runs], _CELL)
            blocks += [Space(_BETWEEN), paragraph(title, _CELL, color, bold=True), text]
        texts.append(Column(blocks))
    panels = [fitted(example.image, _CELL, _CELL) for example in examples]
    return page(paragraph(note, WIDTH, FAINT), Space(_GAP), grid(panels, COLUMNS, _GAP, _GAP, texts))


def read_captioned(
    data: Manifest,
    split: str,
    language: str,
    captions: Mapping[str, Mapping[str, DecodedCaption]],
    rows: Sequence[int],
    read: Callable[[int], Image.Image],
    bases: Mapping[str, str] = MappingProxyType({}),
) -> list[Captioned]:
    """Images of a split with the caption by every system and one reference in a language.

    Args:
        rows: of the images.
        bases: for some systems, the one whose captions a reranking reordered: the words that it changed are marked.
    """
    ids, references = data.images["image_id"], first_references(data, split, language)
    examples = []
    for row in rows:
        own = {name: of_system[ids.iloc[row]] for name, of_system in captions.items()}
        runs = {name: [Run(one.caption) if one.caption else _NOTHING] for name, one in own.items()}
        runs |= {name: mark_changes(own[base].tokens, own[name].tokens) for name, base in bases.items()}
        examples.append(Captioned(read(row), runs, str(references.get(row, ""))))
    return examples


def draw_changed(
    data: Manifest, split: str, language: str, before: Path, after: Path, choice: Choice, report: Reporter
) -> Figure:
    """A sheet of images whose caption a reranking changed, with the CIDEr of both captions."""
    score = partial(system_ciders, data, split, language, timeout=_TIMEOUT)
    systems = read_captions(before), read_captions(after)
    examples, note = compare_captions(data, split, language, *systems, score, choice)
    if is_oracle(read_results(after).values()):
        note = f"Chosen by an oracle from the references: a ceiling, not a result. {note}"
    report.line(note)
    return caption_sheet(examples, note)


def compare_captions(
    data: Manifest,
    split: str,
    language: str,
    before: Mapping[str, DecodedCaption],
    after: Mapping[str, DecodedCaption],
    score: Callable[[Sequence[str], Sequence[Mapping[str, str]]], Sequence[NDArray[np.floating]]],
    choice: Choice,
) -> tuple[list[Captioned], str]:
    """Images whose caption changed, each with both captions as one and their CIDEr, and the note on them.

    Args:
        score: from image ids and the captions of two systems to the CIDEr of each caption (1.0 is 100).
    """
    rows = rows_of_split(data, split, {"the decoding": before, "the reranking": after})
    images = dict(zip(rows, data.images["image_id"].iloc[rows], strict=True))
    systems = [{image: captions[image].caption for image in images.values()} for captions in (before, after)]
    scores = dict(zip(rows, zip(*score(list(images.values()), systems), strict=True), strict=True))
    changed = [row for row, image in images.items() if before[image].caption != after[image].caption]
    references, examples = first_references(data, split, language), []
    with open_images(data) as read:
        for row in choice.choose_images(data, changed):
            title = "CIDEr {:.0f} → {:.0f}".format(*(100 * score for score in scores[row]))
            runs = mark_changes(before[images[row]].tokens, after[images[row]].tokens)
            examples.append(Captioned(read(row), {title: runs}, str(references[row])))
    return examples, note_on_changes(len(rows), len(examples), [scores[row] for row in changed], choice)


def note_on_changes(images: int, count: int, scores: Sequence[tuple[float, float]], choice: Choice) -> str:
    """The note on ``count`` examples of changed captions, with how often CIDEr rose and fell among all of them."""
    if not scores:
        return f"Reranking changed no caption of {images} images."
    rose, fell = sum(new > old for old, new in scores), sum(new < old for old, new in scores)
    return (
        f"{count} of the {len(scores)} images (of {images}) whose caption reranking changed, {choice.note}. Of the "
        f"{len(scores)}, CIDEr rose for {rose}, fell for {fell} and is unchanged for {len(scores) - rose - fell}. "
        "Struck through: removed words; underlined: added words."
    )
