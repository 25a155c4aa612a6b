"""Captions and references of any system, from COCO's files or from Python, by the ids of the images."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vitcapr.errors import UserError
from vitcapr.formats.captions import CocoCaption, read_coco_references, read_results
from vitcapr.formats.identity import match_images
from vitcapr.metrics.base import one_line

Captions = Any
"""A results file of COCO; or the caption of each image by its id, as a mapping or a series of pandas. A list of one
caption is this caption."""
References = Any
"""An annotations file of COCO; or the references of each image by its id. A text is one reference."""


def read_captions(
    captions: Captions, references: Mapping[str, Sequence[str]], files: Mapping[str, str], what: str
) -> dict[str, CocoCaption]:
    """By image id, without line breaks. A file name stands for its image in the references.

    Args:
        files: the file name of each image of the references, by its id.
    """
    if isinstance(captions, str | Path):
        where, written = str(captions), read_results(Path(captions))
    else:
        where, texts = what, {image: _texts(one, image, what) for image, one in _by_image(captions, what).items()}
        if several := [image for image, given in texts.items() if len(given) != 1]:
            raise UserError(f"{len(texts[several[0]])} captions of an image", where=f"{what}, image {several[0]}")
        written = {image: CocoCaption(image_id=image, caption=given[0]) for image, given in texts.items()}
    if not written:
        raise UserError("there is no caption to score", where=where)
    names, ids = [name for name in written if name not in references and name not in files], list(files)
    places = match_images(names, list(files.values()), where)
    image_of = {name: ids[places[name]] if name in places else name for name in written}
    if unknown := [name for name, image in image_of.items() if image not in references]:
        raise UserError(
            f"{len(unknown)} of {len(written)} captions are of images that have no reference",
            where=f"{where}, image {unknown[0]}",
            remedy="give the references of these images, or leave the captions out",
        )
    by_image: dict[str, CocoCaption] = {}
    for name, image in image_of.items():
        if image in by_image:
            raise UserError("an image has two captions", where=f"{where}, image {image} and {name}", remedy="keep one")
        by_image[image] = written[name].model_copy(update={"caption": one_line(written[name].caption)})
    return by_image


def read_references(references: References) -> tuple[dict[str, list[str]], dict[str, str]]:
    """By image id, without line breaks; and image id -> file name."""
    if isinstance(references, str | Path):
        by_image, files = read_coco_references(Path(references))
    else:
        what = "the references"
        by_image, files = {image: _texts(one, image, what) for image, one in _by_image(references, what).items()}, {}
    return {image: [one_line(text) for text in texts] for image, texts in by_image.items()}, files


def _by_image(given: Any, what: str) -> dict[str, Any]:
    """The entries of a mapping or of a series of pandas by image id, as text."""
    if not isinstance(given, Mapping | pd.Series):
        remedy = "give a file of COCO, or a dictionary of image ids"
        raise UserError(f"{what} are a {type(given).__name__}", remedy=remedy)
    entries: dict[str, Any] = {}
    for image, entry in given.items():
        if str(image) in entries:
            raise UserError("an image is there twice", where=f"{what}, image {image}", remedy="keep one")
        entries[str(image)] = entry
    return entries


def _texts(given: Any, image: str, what: str) -> list[str]:
    """A text, or each of several."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    texts = list(given) if several else [given]
    if wrong := [text for text in texts if not isinstance(text, str)]:
        remedy = "give a text or a list of texts for each image"
        raise UserError(f"{wrong[0]!r:.60} is no text", where=f"{what}, image {image}", remedy=remedy)
    return texts
