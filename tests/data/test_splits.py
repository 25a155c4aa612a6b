"""Splits that the names of files and folders tell, by the rule of the library datasets."""

import pytest

from vitcapr.data.splits import share_limit, split_in, splits_in
from vitcapr.errors import UserError

KEY = "data.table.splits: hash"


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("data/train-00000-of-00004.parquet", "train"),
        ("captions_val2017.json", "validation"),
        ("a.Dev.csv", "validation"),
        ("my eval", "test"),
        ("mine_testing_2", "test"),
        ("trainers/latest.csv", None),
        ("training-shoes", "train"),
        ("unsplit", None),
        ("all-00000.parquet", None),
        ("entraîné", None),
    ],
)
def test_a_keyword_stands_alone(name: str, split: str | None) -> None:
    assert split_in(name) == split


@pytest.mark.parametrize(
    ("names", "splits", "line"),
    [
        (["train", "val"], ["train", "validation"], "splits by name: 'train' is train, 'val' is validation"),
        (["/set/train_test/train.csv", "/set/train_test/dev.csv"], ["train", "validation"], "'dev.csv' is validation"),
        (["train/a/x", "test/a/x"], ["train", "test"], "'test/a/x' is test"),
        (["captions_val2017.json"], [], "all names have one split ('captions_val2017.json' is validation)"),
        (["train-0.tar", "train-1.tar"], [], "all names have one split"),
        (["train/a.csv", "train/b.csv"], [], ""),
        (["train_and_val.csv"], [], ""),
        (["a", "b"], [], ""),
        ([], [], ""),
    ],
)
def test_names_that_differ_give_splits(names: list[str], splits: list[str], line: str) -> None:
    by_name, note = splits_in(names, KEY)
    assert list(by_name.values()) == splits
    assert line in note
    assert bool(line) == bool(note)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train", "extra"], r"some names have a split \('train' is train\), but 'extra' has none"),
        (["train", ""], r"but '.' has none"),
        (["train_val", "test"], "the name 'train_val' has two splits, train and validation"),
        (["train/test", "val/x"], "'train/test' has two splits, train and test"),
    ],
)
def test_names_that_do_not_tell_are_an_error(names: list[str], message: str) -> None:
    with pytest.raises(UserError, match=f"{message}; rename it, give a column of splits, or set {KEY}"):
        splits_in(names, KEY)


def test_a_limit_is_shared_in_proportion() -> None:
    """Of 6 images each split has one; train is owed 4.8."""
    assert share_limit({"train": 8, "validation": 1, "test": 1}, 6) == {"train": 4, "validation": 1, "test": 1}
    assert share_limit({"train": 50, "validation": 30, "test": 20}, 10) == {"train": 5, "validation": 3, "test": 2}
