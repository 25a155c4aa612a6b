"""Sheets of images with the captions of several systems and a reference."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from matplotlib.figure import Figure
from PIL import Image

from vitcapr.formats.captions import DecodedCaption, read_captions
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.base import is_oracle, references_of
from vitcapr.metrics.candidates import candidate_ciders
from vitcapr.progress import Reporter
from vitcapr.report.figures.examples import Choice, Run, mark_changes, open_images, rows_of_split
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
_GAP, _BETWEEN = 0.16, 0.05  # inches
_CELL = cell_width(COLUMNS, _GAP)
_LOOKS = {"": Word(""), "del": Word("", VERMILION, STRUCK), "ins": Word("", BLUE, UNDERLINED)}
_NOTHING = Run("(nothing)")
_TIMEOUT = 300.0
"""Seconds for the tokenizer."""


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
    ids, first = data.images["image_id"], data.captions_of(split, language).drop_duplicates("image_row")
    references = first.set_index("image_row")["text"]
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
    old, new = read_captions(before), read_captions(after)
    rows = rows_of_split(data, split, {"the decoding": old, "the reranking": new})
    images = data.images["image_id"].iloc[rows].tolist()
    every = references_of(data, split, language)
    references = {image: every[image] for image in images}
    both = {image: (old[image].caption, new[image].caption) for image in images}
    ciders = dict(zip(images, candidate_ciders(both, references, language, _TIMEOUT), strict=True))
    changed = {row: image for row, image in zip(rows, images, strict=True) if both[image][0] != both[image][1]}
    examples = []
    with open_images(data) as read:
        for row in choice.choose_images(data, list(changed)):
            image = changed[row]
            title = "CIDEr {:.0f} → {:.0f}".format(*(100 * ciders[image]))
            runs = mark_changes(old[image].tokens, new[image].tokens)
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
