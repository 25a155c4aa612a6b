"""The splits of a user's table: as given, by a hash of each image's name, or by a seeded sample."""

import difflib
import hashlib
from collections.abc import Collection, Mapping
from typing import Literal

from vitcapr.errors import UserError

Splits = Literal["auto", "given", "hash", "seeded"]
FOLDERS = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
    "none": "none",
}
"""The spellings of a split."""


def split_named(name: str, where: str) -> str:
    """The split of a spelling; an empty cell is the split ``none``.

    Raises:
        UserError: an unknown spelling.
    """
    spelled = name.strip().lower()
    if not spelled:
        return "none"
    if spelled not in FOLDERS:
        close = difflib.get_close_matches(spelled, FOLDERS, n=1)
        raise UserError(
            f"unknown split '{name}'",
            where=where,
            remedy=f"did you mean '{close[0]}'?" if close else "a split is train, validation, test or none",
        )
    return FOLDERS[spelled]


def make_splits(
    images: Collection[str],
    given: Mapping[str, str],
    how: Splits,
    *,
    validation: float,
    test: float,
    seed: int,
) -> dict[str, str]:
    """The split of each image.

    ``hash`` decides for each image alone: more images change no split. ``seeded`` meets the shares exactly, so more
    images change some splits. ``auto`` is ``given`` if the table has splits, else ``hash``.

    Args:
        images: the ids of the images that can be used.
        given: the split of each image in the table.
        validation, test: shares of the images.

    Raises:
        UserError: the table has no splits, or training or validation would have no image.
    """
    if how == "given" and not given:
        raise UserError(
            "data.table.splits: the table gives no splits", remedy="name data.table.columns.split, or use hash"
        )
    if how == "given" or (how == "auto" and given):
        split_of = {image: given.get(image, "none") for image in images}
    elif how == "seeded":
        split_of = _seeded(images, validation, test, seed)
    else:
        split_of = {image: _hashed(image, validation, test, seed) for image in images}
    for split in ("train", "validation"):
        if split not in split_of.values():
            raise UserError(
                f"none of {len(images)} images is in the {split} split",
                remedy="training needs both train and validation; see data.table.splits",
            )
    return split_of


def _hashed(image: str, validation: float, test: float, seed: int) -> str:
    place = int.from_bytes(_rank(image, seed)[:8], "big") / 2**64
    return "test" if place < test else "validation" if place < test + validation else "train"


def _seeded(images: Collection[str], validation: float, test: float, seed: int) -> dict[str, str]:
    ranked = sorted(images, key=lambda image: _rank(image, seed))
    tested, validated = round(test * len(ranked)), round(validation * len(ranked))
    order = ["test"] * tested + ["validation"] * validated + ["train"] * (len(ranked) - tested - validated)
    return dict(zip(ranked, order, strict=True))


def _rank(image: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{image}".encode()).digest()
