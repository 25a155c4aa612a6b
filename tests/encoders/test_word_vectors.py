"""Word vectors as a text encoder: means by hand, and what they read."""

from pathlib import Path

import numpy as np
import pytest

from vitcapr.encoders.text_encoders import WordVectorEncoder, locate_word_vectors
from vitcapr.errors import UserError


def test_a_caption_is_the_mean_of_its_words(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("dog 3 0\na 0 4\ndog 0 9\n")
    encoder = WordVectorEncoder(tmp_path / "v.txt")
    found = encoder.encode(["A dog!", "dog a dog", "zebra", "the dog"])
    # The first of two vectors counts, a word without one does not.
    np.testing.assert_allclose(found, [[1.5, 2], [2, 4 / 3], [0, 0], [3, 0]], rtol=1e-6)
    assert found.dtype == np.float32
    assert encoder.dim == 2


def test_a_header_line_gives_the_dimension(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("1 3\ndog 1 2 3\n")
    assert WordVectorEncoder(tmp_path / "v.txt").encode(["dog"]).tolist() == [[1, 2, 3]]


def test_the_data_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("data", "here"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "v.txt").write_text(f"{folder} 1\n")
    monkeypatch.chdir(tmp_path / "here")
    assert locate_word_vectors("v.txt") == Path("v.txt")
    monkeypatch.setenv("VITCAPR_DATA", str(tmp_path / "data"))
    assert locate_word_vectors("v.txt") == tmp_path / "data" / "v.txt"
    with pytest.raises(UserError, match="no such file of word vectors"):
        locate_word_vectors("w.txt")
    (tmp_path / "here" / "empty.txt").write_text("")
    with pytest.raises(UserError, match="holds no word vectors"):
        WordVectorEncoder(Path("empty.txt"))
