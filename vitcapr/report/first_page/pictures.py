"""Pictures with what each system wrote, and the training curves, for the first page."""

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from PIL import Image

from vitcapr.data.images import thumbnail
from vitcapr.formats.captions import DecodedCaption, read_captions
from vitcapr.formats.manifest import Manifest
from vitcapr.report.figures.curves import draw_histories
from vitcapr.report.figures.examples import choose, first_references, rows_of_split
from vitcapr.report.figures.style import png_bytes
from vitcapr.report.first_page.content import Captioned, Noted, Picture, Words

SHOWN = 12
"""Pictures with captions."""
CHANGED = 4
"""How many of them are drawn from those whose caption a reranking changed."""
_SIDE = 260
_CURVE_DPI = 140

_KINDS = {"finetuned_dual_encoders": "fine-tuned dual encoders", "backbones": "backbone"}

Captions = Mapping[str, DecodedCaption]
"""The captions of one system, by image id."""


def small(picture: Image.Image, alt: str) -> Picture:
    return Picture(thumbnail(picture, _SIDE), alt)


def training_pictures(histories: Mapping[str, Path]) -> list[Picture]:
    """The training curves of each kind of model.

    Args:
        histories: by the kind and the name of the model, such as ``captioners/plain``.
    """
    return [
        Picture(png_bytes(figure, _CURVE_DPI), f"Training curves of the {_KINDS.get(kind, kind)}", "png")
        for kind, figure in draw_histories(histories).items()
    ]


def changed_rows(
    rows: Sequence[int], ids: Sequence[str], written: Mapping[str, Captions], bases: Mapping[str, str]
) -> list[int]:
    """The rows whose caption at least one reranking changed."""
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
    captions: Mapping[str, Path],
    bases: Mapping[str, str],
    seed: int,
    read: Callable[[int], Image.Image],
) -> Noted[list[Captioned]] | None:
    """Images of a split with the caption of every system. The words that a reranking changed are marked.

    Args:
        language: of the references.
        captions: the captions by system; without any, there is no such section.
        bases: for each reranking, the system whose captions it reorders.
        read: the image of a row.
    """
    if not captions:
        return None
    written = {name: read_captions(path) for name, path in captions.items()}
    bases = {name: base for name, base in bases.items() if {name, base} <= written.keys()}
    ids, references = data.images["image_id"].tolist(), first_references(data, split, language)
    rows = rows_of_split(data, split, written)
    changed = changed_rows(rows, ids, written, bases)
    chosen, among = choose_rows(rows, changed, seed)
    note = f"{len(chosen)} pictures of the {split} split, drawn at random with seed {seed}."
    if bases:
        note += (
            f" Reranking changed the caption of {len(changed):,} of {len(rows):,} pictures; {among} of those shown are "
            "of these. Words that reranking removed are struck through; words that it added are underlined."
        )
    examples = []
    for row in chosen:
        reference = str(references.get(row, ""))
        each = {name: of_system[ids[row]] for name, of_system in written.items()}
        runs = {name: [Words(one.caption)] if one.caption else [] for name, one in each.items()}
        runs |= {name: mark_changes(each[base].tokens, each[name].tokens) for name, base in bases.items()}
        examples.append(Captioned(small(read(row), reference or f"image {ids[row]}"), runs, reference))
    return Noted(examples, note)


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
