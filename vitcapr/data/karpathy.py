"""Karpathy's files ``dataset_coco.json`` and ``dataset_flickr30k.json``: captions and the splits of the literature.

A. Karpathy, L. Fei-Fei: Deep Visual-Semantic Alignments for Generating Image Descriptions. CVPR 2015.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from vitcapr.data.collect import ListedCaption
from vitcapr.data.tars import OddRow, Rejected
from vitcapr.errors import UserError
from vitcapr.files import read_field, read_json

SPLITS = {"train": "train", "val": "validation", "test": "test"}
"""By their names in the files. COCO adds ``restval``."""


class KarpathyImage(NamedTuple):
    """The folder of an image (empty in Flickr30k's file), its file name and its split."""

    folder: str
    name: str
    split: str


def read_karpathy(
    file: Path, key: str, expected: str, splits: Mapping[str, str] = SPLITS, *, numbered: bool = False
) -> tuple[dict[str, KarpathyImage], list[ListedCaption], Rejected]:
    """The images by id, the captions, and (item, reason) of what is left out.

    Args:
        key: of the configuration, which names the file.
        expected: the name of the published file.
        numbered: the ids are COCO's numbers; otherwise an image's id is its file name, and a caption's is that name,
            ``#`` and its number.
    """
    images: dict[str, KarpathyImage] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    form = "whose images have filename, split and sentences with raw; COCO's also cocoid, filepath and sentid"
    with annotations_in(file, key, f"the file {expected}", f"name {expected}, {form}") as content:
        for number, entry in enumerate(read_field(content, "images", list)):
            with odd_entry(rejected, entry, ("cocoid", "filename"), f"{file.name} images[{number}]"):
                name = read_field(entry, "filename", str)
                image = str(read_field(entry, "cocoid", int)) if numbered else name
                if image in images:
                    rejected.append((image, "duplicate image id"))
                    continue
                folder = read_field(entry, "filepath", str) if numbered else ""
                sentences, split = read_field(entry, "sentences", list), read_field(entry, "split", str)
                if split not in splits:
                    raise TypeError(f"unknown split '{split}'")
                images[image] = KarpathyImage(folder, name, splits[split])
                for place, sentence in enumerate(sentences):
                    with odd_entry(rejected, sentence, ("sentid",) if numbered else (), f"{name}#{place}"):
                        identity = str(read_field(sentence, "sentid", int)) if numbered else f"{name}#{place}"
                        captions.append(ListedCaption(identity, image, read_field(sentence, "raw", str)))
        check_entries(captions, rejected)
    return images, captions, rejected


@contextmanager
def annotations_in(file: Path, key: str, what: str, remedy: str) -> Iterator[Any]:
    """The content of a JSON file, as long as it has the form of ``what``; otherwise a UserError that names ``key``."""
    if not file.is_file():
        raise UserError(f"{key}: no such file", where=file, remedy=remedy)
    try:
        yield read_json(file)
    except TypeError as error:
        raise UserError(f"{key}: not {what}: {error}", where=file, remedy=remedy) from error


@contextmanager
def odd_entry(rejected: Rejected, entry: Any, ids: Sequence[str], place: str) -> Iterator[None]:
    """Leave out an entry that cannot be read; it is listed by the first of its ``ids``, or else by its place."""
    try:
        yield
    except TypeError as error:
        known = [entry[name] for name in ids if isinstance(entry, dict) and type(entry.get(name)) in (int, str)]
        rejected.append((str(known[0] if known else place), OddRow(error)))


def check_entries(captions: Sequence[ListedCaption], rejected: Rejected) -> None:
    """Raises:
    TypeError: no caption could be read, because the file has another form.
    """
    if not captions and (odd := [row for row in rejected if isinstance(row[1], OddRow)]):
        raise TypeError(f"{odd[0][1]} ({odd[0][0]})")
