"""Each leak and each oddity in data made for it, and the whole audit on stores."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from vitcapr.extensions.audit import leaks
from vitcapr.extensions.audit.leaks import (
    LANGUAGE,
    LONG,
    MANY,
    ODD,
    ONE_WORD,
    REPEATED,
    SHARED,
    caption_facts,
    equal_images,
    is_foreign,
    nearly_equal,
)


class _Array(np.ndarray):
    def gather(self, rows):
        return np.asarray(self)[rows]


def _vectors(rows):
    return np.array(rows, np.float32).view(_Array)


def _digests(contents):
    return pd.Series([hashlib.sha256(each.encode()).hexdigest() for each in contents], name="sha256")


def test_one_image_under_two_ids_has_its_file_or_its_vector():
    vectors = _vectors([[1, 0], [0, 1], [2, 2], [0, 1], [3, 1]])
    pairs = equal_images(_digests("abcda"), vectors)
    assert [each[:2] for each in pairs] == [(1, 3), (0, 4)]


def test_nearly_equal_images_are_in_two_splits(monkeypatch):
    # Test image 0 is like training image 1; 2 is like 0, in its own split; 4 is in no split.
    vectors = _vectors([[5, 1], [5, 1.01], [5, 1.001], [-5, 4], [5, 1], [-5, -9]])
    splits = np.array(["test", "train", "test", "validation", "none", "train"])
    pairs, compared = nearly_equal(splits, vectors)
    assert compared == 3
    assert {each[:2] for each in pairs} == {(0, 1), (1, 2)}
    assert pairs[0][2] == pytest.approx(1, abs=1e-4)
    monkeypatch.setattr(leaks, "LEAST", 1.1)
    assert nearly_equal(splits, vectors) == ([], 3)


@pytest.mark.parametrize(
    ("text", "language", "foreign"),
    [
        ("A dog runs on the beach", "en", False),
        ("一只狗在跑", "en", True),
        ("一只狗在跑", "zh", False),
        ("A dog runs", "zh", True),
        ("Собака бежит", "ru", False),
        ("犬がビーチを走る", "ja", False),
        ("Koira juoksee rannalla", "fi", False),
        ("2008 !", "en", False),
    ],
)
def test_a_caption_of_another_language(text, language, foreign):
    assert is_foreign(text.lower().replace("!", "").split(), language) == foreign


def test_odd_captions_and_captions_of_two_splits():
    rows = [
        (0, "train", "A dog runs ."),
        (0, "train", "Dog"),
        (1, "test", "a DOG runs"),
        (1, "test", "A cat sleeps on the mat"),
        (2, "train", "Собака и кошка"),
        *((3 + image, "train", "A picture of it") for image in range(MANY)),
        (3 + MANY, "none", "a b c d e f"),
    ]
    table = pd.DataFrame(rows, columns=["image_row", "split", "text"]).assign(language="en")
    facts = caption_facts([table[:4], table[4:]], longest=7)
    expected = {LANGUAGE: [4], ONE_WORD: [1], REPEATED: [*range(5, 5 + MANY)], LONG: [3, 5 + MANY], SHARED: [2]}
    assert {kind: np.flatnonzero(facts[kind]).tolist() for kind in ODD} == expected
    assert np.flatnonzero(facts["held_out"]).tolist() == [2, 3]
