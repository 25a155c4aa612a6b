"""Splits: how files spell and tell them, how they are drawn where no file does, and the first images of each."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
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
    "test": ("test", "testing"),
    "none": ("none",),
}
SPLIT_NAMES = {spelling: split for split, spellings in _SPELLINGS.items() for spelling in spellings}
"""The spellings of a split in tables and in names of files and folders."""


def parse_split(name: str, where: object) -> str:
    """The split of a spelling."""
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
    """The split that the name of a file or folder tells: ``captions_val2017.json`` -> ``validation``."""
    splits = {SPLIT_NAMES[word] for word in re.findall("[a-z]+", PurePath(name).stem.lower()) if word in SPLIT_NAMES}
    return splits.pop() if len(splits) == 1 else None


def splits_in(names: Iterable[str]) -> dict[str, str | None]:
    """:func:`split_in` of several names. Names that all tell one split, or none, tell nothing."""
    splits = {name: split_in(name) for name in names}
    return splits if len(set(splits.values())) > 1 else dict.fromkeys(splits)


def random_splits(names: Iterable[str], seed: int, sizes: tuple[int, int, int]) -> dict[str, str]:
    """The split of each image; validation and test take at most an eighth of the images each.

    Images are ranked by a hash of seed and name, so that losing one image moves at most one other across each border.

    Args:
        sizes: greatest numbers of images for train, validation and test; what is left over is in no split.
    """
    ranked = sorted(names, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest())
    validation, test = (min(size, len(ranked) // 8) for size in sizes[1:])
    train = min(sizes[0], len(ranked) - validation - test)
    order = ["train"] * train + ["validation"] * validation + ["test"] * test
    return dict(zip(ranked, order, strict=False))


def make_splits(
    images: "pd.Series[str]",
    given: "pd.Series[str]",
    how: Splits,
    *,
    validation: float,
    test: float,
    seed: int,
) -> "pd.Series[str]":
    """The split of each image.

    ``hash`` decides for each image alone: more images change no split. ``seeded`` meets the shares exactly, so more
    images change some splits. ``auto`` is ``given`` if the table has splits, else ``hash``.

    Args:
        images: the paths of the images that can be used.
        given: the split of each image in the table, NaN where it has none.
        validation, test: shares of the images.
    """
    if how == "given" and given.isna().all():
        remedy = "name data.table.columns.split, or use hash"
        raise UserError("data.table.splits: the table gives no splits", remedy=remedy)
    if how == "given" or (how == "auto" and given.notna().any()):
        splits = given.fillna("none")
    else:
        digests = (hashlib.sha256(f"{seed}:{image}".encode()).digest() for image in images)
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
                remedy="training needs both train and validation; see data.table.splits",
            )
    return splits


def share_limit(sizes: Mapping[str, int], limit: int | None) -> Counter[str]:
    """The number of images of each split, ``limit`` in all: one of each while there are any, the rest in proportion."""
    total = sum(sizes.values())
    if limit is None or limit >= total:
        return Counter(sizes)
    shares = Counter([split for split in SPLITS if sizes.get(split)][:limit])
    for _ in range(limit - shares.total()):
        shares[max(shares, key=lambda split: limit * sizes[split] / total - shares[split])] += 1
    return shares
