"""Captions as vectors of their words."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vitcapr.errors import UserError
from vitcapr.extensions.alignment.inputs import bags_of_words, word_features
from vitcapr.extensions.alignment.pairing import Pairing, pair_by_file

CAPTIONS = ["A dog runs .", "A dog, a dog", "the cat sleeps", "A zebra runs", "nothing known"]
TRAINED = np.array([True, True, True, False, False])


def test_a_bag_has_the_weights_of_its_words_and_length_one() -> None:
    bags = bags_of_words(CAPTIONS, TRAINED).toarray()
    # Columns: a, cat, dog, runs, sleeps, the. Three training captions; two have a and dog, one has runs.
    common, rare = math.log(4 / 3), math.log(4 / 2)
    expected = np.array([common, 0, common, rare, 0, 0])
    np.testing.assert_allclose(bags[0], expected / np.linalg.norm(expected))
    np.testing.assert_allclose(bags[1], np.array([1, 0, 1, 0, 0, 0]) / math.sqrt(2))
    np.testing.assert_allclose(bags[3], np.array([common, 0, 0, rare, 0, 0]) / math.hypot(common, rare))
    assert not bags[4].any()


def test_features_are_the_projection_onto_singular_vectors() -> None:
    splits = {"train": np.array([0, 1]), "validation": np.array([2]), "test": np.array([3])}
    pairing = Pairing(np.array([1, 2, 3, 4, 6]), np.array([0, 0, 1, 2, 3]), splits, CAPTIONS)
    found = word_features(pairing, 7)
    bags = bags_of_words(CAPTIONS, TRAINED).toarray()
    _, _, directions = np.linalg.svd(bags[TRAINED])
    assert found.shape == (7, 2)
    np.testing.assert_allclose(np.abs(found[pairing.caption_row]), np.abs(bags @ directions[:2].T), atol=1e-6)
    assert not found[[0, 5]].any()


@pytest.mark.parametrize(
    ("captions", "message"),
    [
        (None, "the words of the captions are not known"),
        (["dog", "Dog!", "a", "cat"], "fewer than two different words"),
        (["1", "!", "a", "cat"], "fewer than two different words"),
    ],
)
def test_texts_without_words_are_one_line(captions: list[str] | None, message: str) -> None:
    """The first two captions are for training."""
    splits = {"train": np.array([0, 1]), "validation": np.array([2]), "test": np.array([3])}
    with pytest.raises(UserError, match=message):
        word_features(Pairing(np.arange(4), np.arange(4), splits, captions), 4)


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.parquet"])
def test_a_caption_without_a_text_has_no_words(tmp_path: Path, name: str) -> None:
    images, ids, splits = ["NA", *"bcd"], list("wxyz"), ["train", "train", "validation", "test"]
    table = pd.DataFrame({"image_id": images, "caption_id": ids, "split": splits, "text": ["a dog", None, "a", "b"]})
    table.to_csv(tmp_path / name, index=False) if name.endswith("csv") else table.to_parquet(tmp_path / name)
    pairing = pair_by_file(tmp_path / name, images, ids, seed=0)
    assert pairing.captions == ["a dog", "", "a", "b"]
    assert not word_features(pairing, 4)[1].any()
