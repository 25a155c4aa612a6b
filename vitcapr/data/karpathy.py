"""Karpathy's files ``dataset_coco.json`` and ``dataset_flickr30k.json``: captions and the splits of the literature.

A. Karpathy, L. Fei-Fei: Deep Visual-Semantic Alignments for Generating Image Descriptions. CVPR 2015.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vitcapr.data.collect import ListedCaption, parse_text
from vitcapr.data.tars import Rejected
from vitcapr.errors import UserError
from vitcapr.files import read_json

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
    if not file.is_file():
        raise UserError(f"{key}: no such file", where=file, remedy=f"it should name the file {expected}")
    images: dict[str, KarpathyImage] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    try:
        for entry in read_json(file)["images"]:
            name = parse_text(entry["filename"])
            image = str(parse_number(entry["cocoid"])) if numbered else name
            if image in images:
                rejected.append((image, "duplicate image id"))
                continue
            images[image] = KarpathyImage(entry["filepath"] if numbered else "", name, splits[entry["split"]])
            for place, sentence in enumerate(entry["sentences"]):
                identity = str(parse_number(sentence["sentid"])) if numbered else f"{name}#{place}"
                captions.append(ListedCaption(identity, image, parse_text(sentence["raw"])))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{key}: not the file {expected}: {problem(error)}",
            where=file,
            remedy="each image needs filename, split and sentences with raw; COCO's also cocoid, filepath and sentid",
        ) from error
    return images, captions, rejected


def parse_number(value: Any) -> int:
    """``value`` of a JSON file, where an id should be; anything but a whole number is a TypeError."""
    if type(value) is not int:
        raise TypeError(f"an id is {value!r:.40}, not a whole number")
    return value


def problem(error: Exception) -> str:
    """What an error at a JSON file says to the user."""
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
