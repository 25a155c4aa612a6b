"""Pictures with what each system wrote, and the training curves, for the first page."""

import io
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher

from matplotlib.figure import Figure
from PIL import Image

from vitcapr.formats.captions import DecodedCaption
from vitcapr.formats.manifest import Manifest
from vitcapr.report.figures.examples import choose, rows_of_split
from vitcapr.report.figures.style import save_png
from vitcapr.report.first_page.content import Captioned, Picture, SystemCaption, Words
from vitcapr.retrieval.page import thumbnail

SHOWN = 12
"""Pictures with captions."""
CHANGED = 4
"""How many of them are drawn from those whose caption a reranking changed."""
_SIDE = 260
_CURVE_DPI = 140

Captions = Mapping[str, DecodedCaption]
"""The captions of one system, by image id."""


def small(picture: Image.Image, alt: str) -> Picture:
    return Picture(thumbnail(picture, _SIDE), alt)


def curve(figure: Figure, alt: str) -> Picture:
    stream = io.BytesIO()
    save_png(figure, stream, _CURVE_DPI)
    return Picture(stream.getvalue(), alt, "png")


def changed_rows(
    rows: Sequence[int], ids: Sequence[str], written: Mapping[str, Captions], bases: Mapping[str, str]
) -> list[int]:
    """The rows whose caption at least one reranking changed.

    Args:
        rows: rows of images.
        ids: the id of every image of the data set.
        written: the captions by system.
        bases: for each reranking, the system whose captions it reorders.
    """
    pairs = [(written[name], written[base]) for name, base in bases.items()]
    return [row for row in rows if any(new[ids[row]].tokens != old[ids[row]].tokens for new, old in pairs)]


def choose_rows(rows: Sequence[int], changed: Sequence[int], seed: int) -> tuple[list[int], int]:
    """``SHOWN`` rows at random, in increasing order, and how many of them were drawn among ``changed``."""
    among = choose(changed, min(CHANGED, len(changed)), seed)
    others = [row for row in rows if row not in set(among)]
    return sorted([*among, *choose(others, SHOWN - len(among), seed)]), len(among)


def captioned(
    data: Manifest,
    split: str,
    language: str,
    written: Mapping[str, Captions],
    bases: Mapping[str, str],
    seed: int,
    read: Callable[[int], Image.Image],
) -> tuple[list[Captioned], str]:
    """Pictures of a split with the caption of every system, and a note on how they were chosen.

    Args:
        language: of the references.
        written, bases: see :func:`changed_rows`. The words that a reranking changed are marked.
        read: the picture of an image row.

    Raises:
        UserError: no image of the split has a caption of every system.
    """
    ids = data.images["image_id"].tolist()
    references = data.captions_of(split, language).drop_duplicates("image_row").set_index("image_row")["text"]
    rows = rows_of_split(data, split, written)
    changed = changed_rows(rows, ids, written, bases)
    chosen, among = choose_rows(rows, changed, seed)
    note = f"{len(chosen)} pictures of the {split} split, drawn at random with seed {seed}."
    if bases:
        note += (
            f" Reranking changed the caption of {len(changed):,} of {len(rows):,} pictures; {among} of those shown are "
            "of these. Words that reranking removed are struck through; words that it added are underlined."
        )
    shown = []
    for row in chosen:
        reference = str(references.get(row, ""))
        found = {name: captions[ids[row]] for name, captions in written.items()}
        captions = [
            SystemCaption(
                name, mark_changes(found[base].tokens, one.tokens) if (base := bases.get(name)) else _plain(one)
            )
            for name, one in found.items()
        ]
        shown.append(Captioned(small(read(row), reference or f"image {ids[row]}"), captions, reference))
    return shown, note


def _plain(caption: DecodedCaption) -> list[Words]:
    return [Words(caption.caption)] if caption.caption else []


def mark_changes(before: Sequence[str], after: Sequence[str]) -> list[Words]:
    """Both captions in runs of words: those that went stand before those that came."""
    runs = []
    for what, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            runs.append(Words(" ".join(after[new_start:new_end])))
        else:
            parts = (Words(" ".join(before[start:end]), "del"), Words(" ".join(after[new_start:new_end]), "ins"))
            runs += [part for part in parts if part.text]
    return runs
