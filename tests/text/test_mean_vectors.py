import numpy as np
import pytest

from vitcapr.text.mean_vectors import caption_vectors
from vitcapr.text.word_vectors import VectorFile


def test_the_mean_of_the_words_at_length_one(tmp_path):
    (tmp_path / "v.txt").write_text("dog 3 0\na 0 4\ndog 0 9\n")
    found = caption_vectors(["A dog!", "dog dog", "zebra"], VectorFile(tmp_path / "v.txt", 2))
    assert found.vectors == pytest.approx(np.array([[0.6, 0.8], [1, 0], [0, 0]]))  # the first of two vectors counts
    assert found.known.tolist() == [True, True, False]
    assert found.words_found == 4 / 5
