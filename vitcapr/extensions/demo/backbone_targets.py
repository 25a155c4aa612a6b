"""Targets of a backbone: the objects of an image patch by patch, and the words of its captions."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from PIL import Image

from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.workers import usable_cores

IGNORED = -100
# A patch shows an object if it fills this share of it, and nothing if all objects together fill less than the other.
COVERED, EMPTY = 0.3, 0.05
COMMON_WORD, EVERYWHERE_WORD = 0.01, 0.95
DIRECTIONS = ("left", "right", "above", "below")
AROUND = (*DIRECTIONS, "in front", "behind", *(f"fellow {name}" for name in DIRECTIONS))

Array = npt.NDArray[np.int64]
Pixels = npt.NDArray[np.uint8]
Targets = dict[str, npt.NDArray[Any]]
"""By the names that :func:`build_targets` lists."""


@dataclass(frozen=True)
class ObjectNames:
    """Meaning of the numbers in the targets; 0 is no object among kinds, colours and textures."""

    kinds: list[str]
    colors: list[str]
    textures: list[str]
    words: list[str]
    most: int
    """The largest number of objects of one kind that is told apart; more count as this many."""


def size_of_pictures(data: Manifest, manifest: Path) -> int:
    """Return the width and height of all pictures.

    Raises:
        UserError: they are not square or not all of one size.
    """
    size = int(data.images["width"].iloc[0])
    if (data.images["width"] != size).any() or (data.images["height"] != size).any():
        raise UserError("the pictures to train a backbone on must be square and of one size", where=manifest)
    return size


def names_of_train(data: Manifest, manifest: Path) -> ObjectNames:
    """Return the kinds, colours, textures and words to learn, from the captions and objects of the train split.

    Raises:
        UserError: the data set has no objects, or the split is empty.
    """
    if data.objects is None:
        raise UserError(
            f"the data set {data.dataset} has no objects to learn from",
            where=manifest,
            remedy="name a pretrained backbone in backbones.<name>.source instead of 'trained'",
        )
    images = data.images["image_id"].iloc[data.rows("train")]
    if images.empty:
        raise UserError("the train split is empty", where=manifest)
    objects = data.objects[data.objects["image_id"].isin(images)]
    images_with: Counter[str] = Counter()
    for _, texts in data.captions_of("train").groupby("image_id", sort=False)["text"]:
        images_with.update(set().union(*(caption_words(text) for text in texts)))
    known = {word for word, count in images_with.items() if COMMON_WORD <= count / len(images) <= EVERYWHERE_WORD}
    most = int(objects.groupby(["image_id", "kind"]).size().max())
    kinds, colors, textures = (sorted(objects[name].unique()) for name in ("kind", "color", "texture"))
    return ObjectNames(kinds, colors, textures, sorted(known), most)


def read_split(data: Manifest, split: str, names: ObjectNames, grid: int, size: int) -> tuple[Pixels, Targets]:
    """Return the pictures (N, size, size, 3) and targets of a split."""
    rows = data.rows(split)
    images = data.images.iloc[rows]
    pixels = np.empty((len(rows), size, size, 3), np.uint8)
    with ThreadPoolExecutor(usable_cores()) as pool:
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


def caption_words(text: str) -> set[str]:
    """Return the words of a caption in Latin letters, lower case."""
    return set(re.findall(r"[a-z]+", text.lower()))


def build_targets(
    image_ids: list[str],
    objects: pd.DataFrame,
    captions: pd.DataFrame,
    names: ObjectNames,
    *,
    image_root: Path,
    grid: int,
    size: int,
) -> Targets:
    """Targets of N images, from label pictures at ``size`` pixels a side, cut into P patches, ``grid`` a side.

    Returns:
        With K kinds of objects, C colours and W words: ``kind`` (N, P) what the patch shows, 0 background, else
        1 + number of the kind, IGNORED where undecided; ``color`` and ``texture`` (N, P) in the same way; ``count``
        (N, P) how many of that kind the picture has, IGNORED where no object is; ``numbers`` (N, K) objects of each
        kind; ``present`` (N, K * C) 1 where an object of this kind and colour is in the picture; ``around`` (N, P, 10)
        for a patch of an object, 1 for each of :data:`AROUND` that holds, all 0 where no object is; ``words`` (N, W)
        share of the picture's captions (those in Latin letters) that have the word.

    Raises:
        UserError: a label picture is missing or unreadable.
    """
    number, patches, colors = len(image_ids), grid * grid, len(names.colors)
    targets: Targets = {name: np.zeros((number, patches), np.int64) for name in ("kind", "color", "texture", "count")}
    targets["count"][:] = IGNORED
    targets["numbers"] = np.zeros((number, len(names.kinds)), np.int64)
    wide = {"present": (len(names.kinds) * colors,), "around": (patches, len(AROUND)), "words": (len(names.words),)}
    targets |= {name: np.zeros((number, *shape), np.float32) for name, shape in wide.items()}
    words = {name: place for place, name in enumerate(names.words)}
    rows = {image_id: row for row, image_id in enumerate(image_ids)}
    # A caption in another script has no words here, and says nothing about those of the others.
    heard = np.zeros(number)
    for image_id, text in zip(captions["image_id"], captions["text"], strict=True):
        if image_id in rows and (spoken := caption_words(text)):
            heard[rows[image_id]] += 1
            targets["words"][rows[image_id], [words[word] for word in spoken & words.keys()]] += 1
    targets["words"] /= np.maximum(heard, 1)[:, None]

    looks = {"kind": names.kinds, "color": names.colors, "texture": names.textures}
    known = objects[objects["image_id"].isin(rows)]
    for column, learnt in looks.items():
        known = known[known[column].isin(learnt)]
    row, label = (np.asarray(each, np.int64) for each in (known["image_id"].map(rows), known["label"]))
    numbers = {column: pd.Categorical(known[column], learnt).codes.astype(np.int64) for column, learnt in looks.items()}
    kind, group = numbers["kind"], numbers["kind"] * colors + numbers["color"]
    np.add.at(targets["numbers"], (row, kind), 1)
    np.minimum(targets["numbers"], names.most, out=targets["numbers"])
    targets["present"][row, group] = 1
    masks = known["mask"].tolist()
    in_order = np.argsort(row, kind="stable")
    pictured, starts = np.unique(row[in_order], return_index=True)
    for image, own in zip(pictured, np.split(in_order, starts[1:]), strict=True):
        labels = _read_labels(image_root / masks[own[0]], size)
        cover = patch_coverage(labels, label[own], grid)
        first = cover.argmax(axis=0)
        best = own[first]
        coverage = cover.max(axis=0)
        undecided = (coverage < COVERED) & (cover.sum(axis=0) >= EMPTY)
        is_object = coverage >= COVERED
        for column, value in numbers.items():
            targets[column][image] = np.where(is_object, 1 + value[best], np.where(undecided, IGNORED, 0))
        targets["count"][image] = np.where(is_object, targets["numbers"][image, kind[best]], IGNORED)
        around = surroundings(labels, label[own], group[own])
        targets["around"][image] = np.where(is_object[:, None], around[first], 0)
    return targets


def surroundings(labels: npt.NDArray[np.uint8], values: Array, groups: Array) -> npt.NDArray[np.float32]:
    """Return the directions of the other groups and of an object's own group, seen from each object.

    A group is the objects of one kind and colour. Left or right is decided by the middles if they are at least as far
    apart sideways as in height, above or below otherwise; of groups whose boxes overlap, the lower one is in front.

    Args:
        labels: (S, S), the label picture.
        values: (n,) the label of each object.
        groups: (n,) the group of each object.

    Returns:
        (n, 10), 1 for each of :data:`AROUND` that holds of some other group or of some fellow.
    """
    around: npt.NDArray[np.float32] = np.zeros((len(values), len(AROUND)), np.float32)
    objects = [np.argwhere(labels == value) for value in values]
    members: dict[int, list[int]] = {}
    for place, group in enumerate(groups.tolist()):
        if len(objects[place]):
            members.setdefault(group, []).append(place)
    whole = {group: np.concatenate([objects[place] for place in places]) for group, places in members.items()}
    for own, places in members.items():
        for place in places:
            for other, there in whole.items():
                if other != own:
                    around[place, AROUND.index(_relation(whole[own], there))] = 1
            for fellow in places:
                if fellow != place:
                    around[place, AROUND.index(f"fellow {_direction(objects[place], objects[fellow])}")] = 1
    return around


def _relation(one: Array, other: Array) -> str:
    """Return where the pixels ``other`` (n, 2) are, seen from ``one``; if the boxes overlap, the lower is in front."""
    if (one.min(axis=0) <= other.max(axis=0)).all() and (other.min(axis=0) <= one.max(axis=0)).all():
        return "in front" if other[:, 0].mean() > one[:, 0].mean() else "behind"
    return _direction(one, other)


def _direction(one: Array, other: Array) -> str:
    """Return where the middle of the pixels ``other`` (n, 2) is, seen from that of ``one``."""
    down, right = other.mean(axis=0) - one.mean(axis=0)
    if abs(right) >= abs(down):
        return "left" if right < 0 else "right"
    return "above" if down < 0 else "below"


def patch_coverage(labels: npt.NDArray[np.uint8], values: Array, grid: int) -> npt.NDArray[np.float32]:
    """Return the share of each patch that has each value: ``labels`` (S, S), ``values`` (n,) -> (n, grid * grid)."""
    side = labels.shape[0] // grid
    cut = labels[: grid * side, : grid * side].reshape(grid, side, grid, side)
    same = cut[None] == values[:, None, None, None, None]
    share: npt.NDArray[np.float32] = same.mean(axis=(2, 4), dtype=np.float32).reshape(len(values), grid * grid)
    return share


def _read_labels(path: Path, size: int) -> npt.NDArray[np.uint8]:
    try:
        with Image.open(path) as picture:
            labels = picture if picture.size == (size, size) else picture.resize((size, size), Image.Resampling.NEAREST)
            return np.array(labels, dtype=np.uint8)
    except OSError as error:
        raise UserError("a label picture cannot be read", where=path, remedy="run the data stage again") from error
