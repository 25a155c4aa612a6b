"""Captions before and after reranking, with the CIDEr of both."""

from pathlib import Path

from matplotlib.figure import Figure

from vitcapr.formats.captions import read_captions
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.base import is_oracle, references_of
from vitcapr.metrics.candidates import candidate_ciders
from vitcapr.progress import Reporter
from vitcapr.report.figures.captions import Captioned, caption_sheet
from vitcapr.report.figures.examples import Choice, mark_changes, open_images, rows_of_split

_TIMEOUT = 300.0
"""Seconds for the tokenizer."""


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
