"""Captions as vectors of their words."""

import math

import numpy as np
import pytest

from vitcapr.alignment.words import bags_of_words, word_features
from vitcapr.errors import UserError
from vitcapr.features.batches.pairing import Pairing

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


def test_texts_that_are_not_known_are_one_line() -> None:
    splits = {"train": np.array([0]), "validation": np.array([1]), "test": np.array([2])}
    with pytest.raises(UserError, match="the words of the captions are not known"):
        word_features(Pairing(np.arange(3), np.arange(3), splits), 3)
