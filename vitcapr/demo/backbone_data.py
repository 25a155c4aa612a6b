"""What the small ViT is trained on, the pictures of a split as one array and the targets of each."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from vitcapr.demo.backbone import Pixels
from vitcapr.demo.backbone_targets import ObjectNames, Targets, build_targets, collect_names
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest


def size_of_pictures(data: Manifest, manifest: Path) -> int:
    """The width and height of all pictures.

    Raises:
        UserError: they are not square or not all of one size.
    """
    size = int(data.images["width"].iloc[0])
    if (data.images["width"] != size).any() or (data.images["height"] != size).any():
        raise UserError("the pictures to train a backbone on must be square and of one size", where=manifest)
    return size


def names_of_train(data: Manifest, manifest: Path) -> ObjectNames:
    """What the objects and captions of the train split name.

    Raises:
        UserError: the data set has no objects, or the split is empty.
    """
    if data.objects is None:
        raise UserError(
            f"the data set {data.dataset} has no objects to learn from",
            where=manifest,
            remedy="name a pretrained backbone in backbones.<name>.source instead of 'trained'",
        )
    train_ids = data.images["image_id"].to_numpy()[data.rows("train")]
    if not len(train_ids):
        raise UserError("the train split is empty", where=manifest)
    in_train = data.objects["image_id"].isin(train_ids), data.captions["image_id"].isin(train_ids)
    return collect_names(data.objects[in_train[0]], data.captions[in_train[1]], len(train_ids))


def read_split(data: Manifest, split: str, names: ObjectNames, grid: int, size: int) -> tuple[Pixels, Targets]:
    """The pictures (N, size, size, 3) and targets of a split."""
    rows = data.rows(split)
    images = data.images.iloc[rows]
    pixels = np.empty((len(rows), size, size, 3), np.uint8)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number, picture in enumerate(pool.map(_decode, (data.image_root / path for path in images["path"]))):
            pixels[number] = picture
    assert data.objects is not None
    targets = build_targets(
        images["image_id"].tolist(),
        data.objects,
        data.captions,
        names,
        image_root=data.image_root,
        grid=grid,
        size=size,
    )
    return pixels, targets


def _decode(path: Path) -> Pixels:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))
