"""Captions are assigned to images by name and by file, and images are held out."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vitcapr.errors import UserError
from vitcapr.extensions.alignment.pairing import pair_by_file, pair_by_id

IMAGES = 60
NAMES = [f"image{number}.jpg" for number in range(IMAGES)]
CAPTIONS = [f"{name}#{number}" for name in NAMES for number in range(2)]


def test_by_name() -> None:
    pairing = pair_by_id(["b", "a", "c", *NAMES], ["a#0", "c", "b#x", *CAPTIONS], seed=0)
    assert pairing.image_row[:3].tolist() == [0, 1, 2]
    assert pairing.caption_row[:3].tolist() == [2, 0, 1]
    together = np.concatenate(list(pairing.splits.values()))
    assert sorted(together) == list(range(IMAGES + 3))
    assert {name: len(rows) for name, rows in pairing.splits.items()} == {"test": 6, "validation": 3, "train": 54}
    again = pair_by_id(NAMES, CAPTIONS, seed=0).splits["test"]
    assert again.tolist() == pair_by_id(NAMES, CAPTIONS, seed=0).splits["test"].tolist()
    assert again.tolist() != pair_by_id(NAMES, CAPTIONS, seed=1).splits["test"].tolist()


def test_by_file(tmp_path: Path) -> None:
    table = pd.DataFrame({"image_id": NAMES, "caption_id": CAPTIONS[1::2], "split": ["train"] * 50 + ["test"] * 10})
    table.to_csv(tmp_path / "pairs.csv", index=False)
    table.drop(columns="split").to_parquet(tmp_path / "pairs.parquet")
    pairing = pair_by_file(tmp_path / "pairs.csv", NAMES, CAPTIONS, seed=0)
    assert pairing.splits["test"].tolist() == list(range(50, 60))
    assert len(pairing.splits["validation"]) == 2
    assert pairing.caption_row.tolist() == list(range(1, 120, 2))
    assert len(pair_by_file(tmp_path / "pairs.parquet", NAMES, CAPTIONS, seed=0).splits["test"]) == 6


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"image_id": ["x"], "caption_id": [CAPTIONS[0]]}, "no image of the store is called 'x'"),
        ({"image_id": [NAMES[0]], "caption_id": ["y"]}, "no caption of the store is called 'y'"),
        ({"image": [NAMES[0]]}, "has image_id and caption_id"),
        ({"image_id": NAMES[:1], "caption_id": CAPTIONS[:1], "split": ["dev"]}, "no split is called 'dev'"),
        ({"image_id": NAMES[:1] * 2, "caption_id": CAPTIONS[:2], "split": ["train", "test"]}, "in two splits"),
        ({"image_id": NAMES[:1], "caption_id": CAPTIONS[:1], "split": ["test"]}, "no pair is for training"),
        ({"image_id": NAMES[:3], "caption_id": CAPTIONS[::2][:3]}, "too few images"),
    ],
)
def test_mistakes(tmp_path: Path, table: dict[str, list[str]], message: str) -> None:
    pd.DataFrame(table).to_csv(tmp_path / "pairs.csv", index=False)
    with pytest.raises(UserError, match=message):
        pair_by_file(tmp_path / "pairs.csv", NAMES, CAPTIONS, seed=0)


def test_captions_that_name_no_image_need_a_file() -> None:
    with pytest.raises(UserError, match=r"called 'cat'.*--pairs"):
        pair_by_id(NAMES, ["cat#1"], seed=0)
