"""Inputs of the grounding metric: the attention of a captioner and the object masks."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from PIL import Image

from vitcapr.data.archive import Archive, DamagedMember
from vitcapr.demo.grounding import MaskedPicture
from vitcapr.errors import UserError
from vitcapr.formats.captions import read_attention
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.bootstrap import Array
from vitcapr.progress import Reporter


def object_words(data: Manifest, where: Path) -> frozenset[str]:
    """All words that name an object in any picture.

    Raises:
        UserError: the data set has no masks of objects.
    """
    if data.objects is None:
        raise UserError(f"the data set {data.dataset} has no masks of objects", where=where)
    return frozenset(word for listed in data.objects["words"] for word in listed)


def attention_by_image(
    path: Path, rows: npt.NDArray[np.int64], words: Sequence[Sequence[str]]
) -> tuple[list[Array], tuple[int, int]]:
    """For each image row the weights (words, P) in float64, and the grid.

    Raises:
        UserError: the attention is of other images or of other captions.
    """
    table = read_attention(path)
    found = []
    for row, said in zip(rows, words, strict=True):
        weights = table.of_row(int(row))
        if weights is None or len(weights) != len(said):
            what = "no attention" if weights is None else f"attention for {len(weights)} words, not {len(said)},"
            remedy = "give captions and attention of one decoding"
            raise UserError(f"{what} of the image in row {row}", where=path, remedy=remedy)
        found.append(weights.reshape(len(weights), -1).astype(np.float64))
    return found, table.grid


def read_pictures(data: Manifest, images: Sequence[str], report: Reporter) -> list[MaskedPicture]:
    """The label picture of each image, and the labels that each word names; no label where no object is known.

    Raises:
        UserError: a mask is missing, damaged, or not a picture of labels.
    """
    of_image = {} if data.objects is None else dict(iter(data.objects.groupby("image_id", sort=False)))
    pictures = []
    with Archive(data.image_root) as archive, report.track("masks", len(images), "images") as tracker:
        for image in images:
            objects = of_image.get(image)
            pictures.append(
                MaskedPicture(np.zeros((1, 1), np.uint8), {}) if objects is None else _picture(archive, objects)
            )
            tracker.advance()
    return pictures


def _picture(archive: Archive, objects: pd.DataFrame) -> MaskedPicture:
    """The objects of one image, which share a label picture."""
    path = objects["mask"].iloc[0]
    if (objects["mask"] != path).any():
        image = objects["image_id"].iloc[0]
        raise UserError("the objects of an image are in several label pictures", where=f"image {image}")
    try:
        with Image.open(io.BytesIO(archive.read(path))) as picture:
            labels = np.asarray(picture)
    except (OSError, DamagedMember) as error:
        raise UserError(
            "a mask cannot be read", where=archive.root / path, remedy="run the data stage again"
        ) from error
    if labels.ndim != 2:
        raise UserError("a mask is not a picture of labels with one channel", where=archive.root / path)
    named: dict[str, frozenset[int]] = {}
    for words, label in zip(objects["words"], objects["label"], strict=True):
        for word in words:
            named[word] = named.get(word, frozenset()) | {int(label)}
    return MaskedPicture(labels, named)
