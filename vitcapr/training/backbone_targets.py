"""What a backbone learns to tell from a picture: its objects patch by patch, and the words of its captions."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from PIL import Image

from vitcapr.errors import UserError

IGNORED = -100
# A patch shows an object if it fills this share of it, and nothing if all objects together fill less than the other.
COVERED, EMPTY = 0.3, 0.05
COMMON_WORD, EVERYWHERE_WORD = 0.01, 0.95
DIRECTIONS = ("left", "right", "above", "below")
AROUND = (*DIRECTIONS, "overlapping", *(f"fellow {name}" for name in DIRECTIONS))

Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Names:
    """What the numbers of the targets mean; 0 stands for no object among kinds and colours."""

    kinds: list[str]
    colors: list[str]
    words: list[str]
    most: int
    """The largest number of objects of one kind that is told apart; more count as this many."""


@dataclass(frozen=True)
class Targets:
    """Targets of N images with P patches, K kinds (besides none), C colours, W words.

    Attributes:
        kind: (N, P) what the patch shows: 0 background, else 1 + number of the kind; IGNORED where undecided.
        color: (N, P) the same for its colour.
        count: (N, P) how many of that kind the picture has; IGNORED where no object is.
        covered: (N, P) share of the patch filled by its object.
        numbers: (N, K) objects of each kind.
        present: (N, K * C) 1 where an object of this kind and colour is in the picture.
        around: (N, P, 9) for a patch of an object, 1 for each of :data:`AROUND` that holds; all 0 where no object is.
        words: (N, W) share of the picture's captions (those in Latin letters) that have the word.
    """

    kind: Array
    color: Array
    count: Array
    covered: npt.NDArray[np.float32]
    numbers: Array
    present: npt.NDArray[np.float32]
    around: npt.NDArray[np.float32]
    words: npt.NDArray[np.float32]


def caption_words(text: str) -> set[str]:
    """The words of a caption in Latin letters, lower case."""
    return set(re.findall(r"[a-z]+", text.lower()))


def collect_names(objects: pd.DataFrame, captions: pd.DataFrame, images: int) -> Names:
    """The kinds, colours and words to learn, from the captions and objects of ``images`` training images."""
    seen: Counter[str] = Counter()
    for _, texts in captions.groupby("image_id", sort=False)["text"]:
        seen.update(set().union(*(caption_words(text) for text in texts)))
    words = sorted(word for word, number in seen.items() if COMMON_WORD <= number / images <= EVERYWHERE_WORD)
    most = int(objects.groupby(["image_id", "kind"]).size().max())
    return Names(sorted(objects["kind"].unique()), sorted(objects["color"].unique()), words, most)


def build_targets(
    image_ids: list[str],
    objects: pd.DataFrame,
    captions: pd.DataFrame,
    names: Names,
    *,
    image_root: Path,
    grid: int,
    size: int,
) -> Targets:
    """Targets of ``image_ids``, from label pictures at ``size`` pixels a side, cut into ``grid`` patches a side.

    Raises:
        UserError: a label picture is missing or unreadable.
    """
    number, patches = len(image_ids), grid * grid
    kinds = {name: place for place, name in enumerate(names.kinds)}
    colors = {name: place for place, name in enumerate(names.colors)}
    words = {name: place for place, name in enumerate(names.words)}
    targets = Targets(
        kind=np.zeros((number, patches), np.int64),
        color=np.zeros((number, patches), np.int64),
        count=np.full((number, patches), IGNORED, np.int64),
        covered=np.zeros((number, patches), np.float32),
        numbers=np.zeros((number, len(kinds)), np.int64),
        present=np.zeros((number, len(kinds) * len(colors)), np.float32),
        around=np.zeros((number, patches, len(AROUND)), np.float32),
        words=np.zeros((number, len(words)), np.float32),
    )
    rows = {image_id: row for row, image_id in enumerate(image_ids)}

    for image_id, texts in captions.groupby("image_id", sort=False)["text"]:
        row = rows.get(str(image_id))
        # A caption in another script has no words here, and says nothing about those of the others.
        found_words = [heard for text in texts if (heard := caption_words(text))]
        for told in found_words if row is not None else ():
            for word in told & words.keys():
                targets.words[row, words[word]] += 1 / len(found_words)

    for image_id, found in objects.groupby("image_id", sort=False):
        row = rows.get(str(image_id))
        if row is None:
            continue
        known = found[found["kind"].isin(kinds) & found["color"].isin(colors)]
        if known.empty:
            continue
        for name, amount in known["kind"].value_counts().items():
            targets.numbers[row, kinds[str(name)]] = min(int(amount), names.most)
        kind = known["kind"].map(kinds).to_numpy()
        color = known["color"].map(colors).to_numpy()
        targets.present[row, kind * len(colors) + color] = 1
        labels = _read_labels(image_root / str(known["mask"].iloc[0]), size)
        cover = patch_coverage(labels, known["label"].to_numpy(), grid)
        best = cover.argmax(axis=0)
        shown = cover.max(axis=0)
        undecided = (shown < COVERED) & (cover.sum(axis=0) >= EMPTY)
        is_object = shown >= COVERED
        targets.kind[row] = np.where(is_object, 1 + kind[best], np.where(undecided, IGNORED, 0))
        targets.color[row] = np.where(is_object, 1 + color[best], np.where(undecided, IGNORED, 0))
        targets.count[row] = np.where(is_object, targets.numbers[row, kind[best]], IGNORED)
        targets.covered[row] = shown
        around = surroundings(labels, known["label"].to_numpy(), kind * len(colors) + color)
        targets.around[row] = np.where(is_object[:, None], around[best], 0)
    return targets


def surroundings(labels: npt.NDArray[np.uint8], values: Array, groups: Array) -> npt.NDArray[np.float32]:
    """Where the other groups and the object's own fellows lie, seen from each object.

    A group is the objects of one kind and colour. Left or right is decided by the middles if they are at least as far
    apart sideways as in height, above or below otherwise; groups whose boxes overlap have no direction.

    Args:
        labels: (S, S), the label picture.
        values: (n,) the label of each object.
        groups: (n,) the group of each object.

    Returns:
        (n, 9), 1 for each of :data:`AROUND` that holds of some other group or of some fellow.
    """
    found: npt.NDArray[np.float32] = np.zeros((len(values), len(AROUND)), np.float32)
    whole = {group: np.nonzero(np.isin(labels, values[groups == group])) for group in np.unique(groups)}
    single = [np.nonzero(labels == value) for value in values]
    for place, own in enumerate(groups):
        if not len(single[place][0]):
            continue
        for other, pixels in whole.items():
            if other != own and len(pixels[0]):
                name = "overlapping" if _overlap(whole[own], pixels) else _direction(whole[own], pixels)
                found[place, AROUND.index(name)] = 1
        for fellow in np.flatnonzero(groups == own):
            if fellow != place and len(single[fellow][0]):
                found[place, AROUND.index(f"fellow {_direction(single[place], single[fellow])}")] = 1
    return found


Pixels = tuple[Array, ...]
"""Rows and columns of some pixels, as ``np.nonzero`` gives them."""


def _overlap(one: Pixels, other: Pixels) -> bool:
    """Whether the boxes around them do."""
    return all(a.min() <= b.max() and b.min() <= a.max() for a, b in zip(one, other, strict=True))


def _direction(start: Pixels, end: Pixels) -> str:
    down, right = (float(b.mean() - a.mean()) for a, b in zip(start, end, strict=True))
    if abs(right) >= abs(down):
        return "left" if right < 0 else "right"
    return "above" if down < 0 else "below"


def patch_coverage(labels: npt.NDArray[np.uint8], values: Array, grid: int) -> npt.NDArray[np.float32]:
    """The share of each patch that has each value: ``labels`` (S, S), ``values`` (n,) -> (n, grid * grid)."""
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
