"""The images of the explorer and their references, of one or several experiments, each with one number."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.report.explorer.results import Results

Numbers = NDArray[np.int64]
ABSENT = -1


@dataclass(frozen=True)
class GalleryImage:
    """An image, and where its file is: below a folder or in an archive."""

    image_id: str
    root: Path
    path: str
    width: int
    height: int


@dataclass(frozen=True)
class Reference:
    """A caption of the data set; ``image`` is the number of its image."""

    image: int
    text: str
    language: str


@dataclass(frozen=True, eq=False)
class Gallery:
    """Attributes:
    images: the images of the split, in the order of the first experiment, then further ones of the others.
    references: in the order of the images.
    image_of_row: for each experiment, the number of the image of each row of its manifest; ``ABSENT`` for other splits.
    reference_of_row: the same for rows of captions.
    """

    images: list[GalleryImage]
    references: list[Reference]
    image_of_row: list[Numbers]
    reference_of_row: list[Numbers]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each image id."""
        return {image.image_id: number for number, image in enumerate(self.images)}


def build_gallery(experiments: Sequence[Results], split: str) -> Gallery:
    """The images and references of a split of all experiments. What two experiments share is there once."""
    images: list[GalleryImage] = []
    known: dict[str, tuple[int, str, str]] = {}  # Of an image id: number, digest, experiment.
    image_of_row = []
    for one in experiments:
        rows, table = one.data.rows(split), one.data.images
        numbers = np.full(len(table), ABSENT, np.int64)
        for row, record in zip(rows, table.iloc[rows].to_dict("records"), strict=True):
            image_id, digest = str(record["image_id"]), str(record["sha256"])
            if image_id not in known:
                known[image_id] = len(images), digest, one.name
                path, size = str(record["path"]), (int(record["width"]), int(record["height"]))
                images.append(GalleryImage(image_id, one.data.image_root, path, *size))
            number, first_digest, first = known[image_id]
            if first_digest != digest:
                what = f"image '{image_id}' of {one.name} is another picture than that of {first}"
                raise UserError(what, remedy="explore experiments of one data set")
            numbers[row] = number
        image_of_row.append(numbers)
    references, reference_of_row = _references(experiments, split, image_of_row)
    return Gallery(images, references, image_of_row, reference_of_row)


def _references(
    experiments: Sequence[Results], split: str, image_of_row: Sequence[Numbers]
) -> tuple[list[Reference], list[Numbers]]:
    tables = []
    for number, (one, numbers) in enumerate(zip(experiments, image_of_row, strict=True)):
        captions = one.data.captions_of(split)
        tables.append(captions.assign(experiment=number, image=numbers[captions["image_row"]]))
    every, key = pd.concat(tables), ["image", "text", "language"]
    different = every[key].drop_duplicates().sort_values("image", kind="stable", ignore_index=True)
    reference_of_row = [np.full(len(one.data.captions), ABSENT, np.int64) for one in experiments]
    every = every.merge(different.reset_index(names="reference"), on=key)
    for number, numbers in enumerate(reference_of_row):
        own = every[every["experiment"] == number]
        numbers[own["caption_row"]] = own["reference"]
    return [Reference(*each) for each in different.itertuples(index=False)], reference_of_row
