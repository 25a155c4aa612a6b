"""Captions before and after reranking, with the CIDEr of both."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from vitcapr.formats.captions import DecodedCaption, read_captions, read_results
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.base import is_oracle
from vitcapr.metrics.candidates import system_ciders
from vitcapr.progress import Reporter
from vitcapr.report.figures.captions import Captioned, caption_sheet
from vitcapr.report.figures.examples import Choice, first_references, mark_changes, open_images, rows_of_split

_TIMEOUT = 300.0
"""Seconds for the tokenizer."""


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
