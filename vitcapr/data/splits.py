"""Splits: how files spell and tell them, how they are drawn where no file does, and the first images of each."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePath
from typing import Literal

import numpy as np
import pandas as pd

from vitcapr.errors import UserError, did_you_mean
from vitcapr.formats.manifest import SPLITS

Splits = Literal["auto", "given", "hash", "seeded"]
_SPELLINGS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
    "none": ("none",),
}
SPLIT_NAMES = {spelling: split for split, spellings in _SPELLINGS.items() for spelling in spellings}
"""The spellings of a split in tables and in names of files and folders."""


def parse_split(name: str, where: object) -> str:
    """Return the split of a spelling."""
    spelling = name.strip().lower()
    if spelling not in SPLIT_NAMES:
        remedy = did_you_mean(spelling, SPLIT_NAMES, "a split is train, validation, test or none")
        raise UserError(f"unknown split '{name}'", where=where, remedy=remedy)
    return SPLIT_NAMES[spelling]


def put_in_split(split_of: dict[str, str], image: str, split: str, where: object) -> None:
    """Note the split of an image; an image in two splits would leak into training."""
    if split_of.setdefault(image, split) != split:
        raise UserError(
            f"image '{image}' is in the {split_of[image]} split and in the {split} split",
            where=where,
            remedy="an image may be in one split only",
        )


def split_in(name: str) -> str | None:
    """Return the split that a name or a path states: ``captions_val2017.json`` -> ``validation``.

    As in the library datasets of Hugging Face, a keyword stands between the ends of names, digits or punctuation.

    Raises:
        ValueError: it tells two.
    """
    words = re.findall(r"[^\W\d_]+", name.lower())
    splits = dict.fromkeys(SPLIT_NAMES[word] for word in words if word in SPLIT_NAMES)
    if len(splits) > 1:
        raise ValueError(f"the name '{name}' has two splits, {' and '.join(splits)}")
    return next(iter(splits), None)


def splits_in(names: Iterable[str], key: str) -> tuple[dict[str, str], str]:
    """Return the splits that the paths of several files or folders tell, and a line about them, empty if there is none.

    The folders that all of them share do not count. Paths that all tell one split, or none, give no splits.

    Args:
        key: of the configuration, with the value that draws splits instead.

    Raises:
        UserError: one tells two splits, or one tells a split and another none.
    """
    paths = {name: PurePath(name).parts for name in names}
    shared = max(0, min(map(len, paths.values()), default=0) - 1)
    while len({parts[:shared] for parts in paths.values()}) > 1:
        shared -= 1
    remedy = f"rename it, give a column of splits, or set {key}"
    try:
        told = {name: split_in("/".join(parts[shared:])) for name, parts in paths.items()}
    except ValueError as error:
        if len(paths) == 1:
            return {}, ""
        raise UserError(str(error), remedy=remedy) from error
    first = {split: "/".join(paths[name][shared:]) or "." for name, split in reversed(told.items())}
    examples = ", ".join(f"'{first[split]}' is {split}" for split in SPLITS if split in first)
    if None not in first and len(first) > 1:
        return {name: split for name, split in told.items() if split}, f"splits by name: {examples}"
    if len(first) > 1:
        raise UserError(f"some names have a split ({examples}), but '{first[None]}' has none", remedy=remedy)
    return {}, examples and f"all names have one split ({examples}), so the splits are not by name"


def random_splits(names: Iterable[str], sizes: tuple[int, int, int]) -> dict[str, str]:
    """Return the split of each image; validation and test take at most an eighth of the images each.

    Images are ranked by a hash of the name, so that losing one image moves at most one other across each border.

    Args:
        sizes: greatest numbers of images for train, validation and test; what is left over is in no split.
    """
    # The prefix keeps the splits that earlier runs drew with seed 0.
    ranked = sorted(names, key=lambda name: hashlib.sha256(f"0:{name}".encode()).digest())
    validation, test = (min(size, len(ranked) // 8) for size in sizes[1:])
    train = min(sizes[0], len(ranked) - validation - test)
    order = ["train"] * train + ["validation"] * validation + ["test"] * test
    return dict(zip(ranked, order, strict=False))


def make_splits(
    images: "pd.Series[str]",
    given: "pd.Series[str]",
    how: Splits,
    changed: Collection[str] = (),
    *,
    validation: float,
    test: float,
    seed: int,
) -> "pd.Series[str]":
    """Return the split of each image.

    ``hash`` decides for each image alone: more images change no split. ``seeded`` meets the shares exactly, so more
    images change some splits. ``auto`` is ``given`` if the table has splits, else ``hash``.

    Args:
        images: the paths of the images that can be used.
        given: the split of each image by a column or by names, NaN where it has none.
        changed: those of the following arguments that the user has set.
        validation, test: shares of the images.
    """
    if how == "given" and given.isna().all():
        what = "data.table.splits: neither a column nor the names of files and folders give splits"
        raise UserError(what, remedy="name data.table.columns.split, or use hash")
    if how == "given" or (how == "auto" and given.notna().any()):
        if changed:
            what = f"data.table.{sorted(changed)[0]} has no effect: a column or names give the splits"
            raise UserError(what, remedy="remove it, or set data.table.splits: hash")
        splits = given.fillna("none")
    else:
        names = (unicodedata.normalize("NFC", image) for image in images)  # A Mac writes the other form.
        digests = (hashlib.sha256(f"{seed}:{name}".encode()).digest() for name in names)
        ranks = np.fromiter((int.from_bytes(digest[:8], "big") for digest in digests), np.uint64, len(images))
        if how == "seeded":
            places = np.empty(len(images))
            places[ranks.argsort()] = np.arange(len(images))
            test, validation = round(test * len(images)), round(validation * len(images))
        else:
            places = ranks / 2**64
        splits = (
            pd.Series("train", images.index, "str")
            .mask(places < test + validation, "validation")
            .mask(places < test, "test")
        )
    for split in ("train", "validation"):
        if not (splits == split).any():
            raise UserError(
                f"none of {len(images)} images is in the {split} split",
                remedy="training needs both train and validation; data.table.splits: seeded gives exact shares",
            )
    return splits


def share_limit(sizes: Mapping[str, int], limit: int | None) -> Counter[str]:
    """Share ``limit`` images among the splits: one of each while there are any, the rest in proportion."""
    total = sum(sizes.values())
    if limit is None or limit >= total:
        return Counter(sizes)
    shares = Counter([split for split in SPLITS if sizes.get(split)][:limit])
    for _ in range(limit - shares.total()):
        shares[max(shares, key=lambda split: limit * sizes[split] / total - shares[split])] += 1
    return shares
