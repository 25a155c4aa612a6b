"""Splits by hash do not move when images are added; seeded splits have exact sizes."""

import pytest

from vitcapr.data.table.splits import make_splits
from vitcapr.errors import UserError

IMAGES = [f"{number}.jpg" for number in range(500)]
SHARES = {"validation": 0.1, "test": 0.2, "seed": 0}


def sizes(split_of: dict[str, str]) -> list[int]:
    return [list(split_of.values()).count(split) for split in ("train", "validation", "test")]


def test_a_hash_moves_no_image_when_images_are_added() -> None:
    before = make_splits(IMAGES[:400], {}, "auto", **SHARES)
    after = make_splits(IMAGES, {}, "hash", **SHARES)
    assert {name: after[name] for name in before} == before
    # 500 draws at 0.7, 0.1 and 0.2: the standard deviations are 10.2, 6.7 and 8.9.
    assert all(abs(size - expected) < 30 for size, expected in zip(sizes(after), (350, 50, 100), strict=True))
    assert make_splits(IMAGES, {}, "hash", **{**SHARES, "seed": 1}) != after


def test_seeded_splits_have_exact_sizes() -> None:
    assert sizes(make_splits(IMAGES, {}, "seeded", **SHARES)) == [350, 50, 100]


def test_given_splits_are_kept_and_others_are_in_none() -> None:
    given = {"0.jpg": "train", "1.jpg": "validation"}
    assert make_splits(IMAGES[:3], given, "auto", **SHARES) == {**given, "2.jpg": "none"}
    assert "2.jpg" in make_splits(IMAGES, given, "seeded", **SHARES)
    with pytest.raises(UserError, match="the table gives no splits"):
        make_splits(IMAGES, {}, "given", **SHARES)
    with pytest.raises(UserError, match="none of 2 images is in the validation split"):
        make_splits(IMAGES[:2], {}, "seeded", **SHARES)
