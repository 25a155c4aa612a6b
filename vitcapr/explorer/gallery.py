"""The images of the explorer and their references, of one or several experiments, each with one number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.explorer.results import Results

Numbers = NDArray[np.int64]
ABSENT = -1


@dataclass(frozen=True, eq=False)
class Gallery:
    """Attributes:
    images: those of the split, in the order of the first experiment, then further ones of the others: ``image_id, root,
        path, width, height``; ``root`` is a folder or an archive.
    references: in the order of the images: ``image, text, language``; ``image`` is the number of the image.
    image_of_row: for each experiment, the number of the image of each row of its manifest; ``ABSENT`` for other splits.
    reference_of_row: the same for rows of captions.
    """

    images: pd.DataFrame
    references: pd.DataFrame
    image_of_row: list[Numbers]
    reference_of_row: list[Numbers]


def build_gallery(experiments: Sequence[Results], split: str) -> Gallery:
    """The images and references of a split of all experiments. What two experiments share is there once."""
    tables, texts = [], []
    for number, one in enumerate(experiments):
        rows = one.data.rows(split)
        origin: dict[str, Any] = {"experiment": number, "name": one.name, "root": one.data.image_root}
        tables.append(one.data.images.iloc[rows].assign(row=rows, **origin))
        texts.append(one.data.captions_of(split).assign(experiment=number))
    every = pd.concat(tables, ignore_index=True)
    images = every.drop_duplicates("image_id", ignore_index=True)
    every["image"] = pd.factorize(every["image_id"])[0]
    for _, other in every[every["sha256"] != images["sha256"].loc[every["image"]].to_numpy()].iterrows():
        first = images["name"].iloc[other["image"]]
        what = f"image '{other['image_id']}' of {other['name']} is another picture than that of {first}"
        raise UserError(what, remedy="explore experiments of one data set")
    image_of_row = _by_row(every, "row", "image", [len(one.data.images) for one in experiments])
    captions, key = pd.concat(texts), ["image", "text", "language"]
    captions["image"] = [
        image_of_row[n][row] for n, row in zip(captions["experiment"], captions["image_row"], strict=True)
    ]
    references = captions[key].drop_duplicates().sort_values("image", kind="stable", ignore_index=True)
    captions = captions.merge(references.reset_index(names="reference"), on=key)
    sizes = [len(one.data.captions) for one in experiments]
    return Gallery(images, references, image_of_row, _by_row(captions, "caption_row", "reference", sizes))


def _by_row(table: pd.DataFrame, row: str, number: str, sizes: Sequence[int]) -> list[Numbers]:
    """For each experiment, a number for each of its rows."""
    numbers = [np.full(size, ABSENT, np.int64) for size in sizes]
    for experiment, own_numbers in enumerate(numbers):
        own = table[table["experiment"] == experiment]
        own_numbers[own[row]] = own[number]
    return numbers
