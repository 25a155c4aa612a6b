import numpy as np
import pytest

from vitcapr.errors import UserError
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.text.vector_files import describe_coverage, initial_embedding, read_vectors


@pytest.fixture
def vocabulary():
    """a 3, dog 2, emu 1."""
    return Vocabulary.build(["a", "dog", "a", "dog", "a", "emu"], min_count=1, unknown=False)


def vectors(tmp_path, text):
    path = tmp_path / "vectors.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(tmp_path, text):
    bad_lines = []
    return dict(read_vectors(vectors(tmp_path, text), 2, bad_lines)), bad_lines


def test_words_of_the_file_get_their_first_vectors_and_padding_is_zero(tmp_path, vocabulary):
    file = vectors(tmp_path, "the 9 9\na 1 2\ndog -3 4.5\na 3 4\n")
    matrix, coverage = initial_embedding(vocabulary, file, 2, seed=0)
    assert matrix.shape == (6, 2)
    assert matrix.dtype == np.float32
    assert matrix[vocabulary.index["a"]].tolist() == [1, 2]
    assert matrix[vocabulary.index["dog"]].tolist() == [-3, 4.5]
    assert matrix[vocabulary.pad].tolist() == [0, 0]
    assert coverage == {
        "types": {"found": 2, "of": 3, "share": 2 / 3},
        "tokens": {"found": 5, "of": 6, "share": 5 / 6},
        "missing": {"count": 1, "words": ["emu"]},
        "file": {"vectors": 4, "bad_lines": {"count": 0, "numbers": []}},
    }


def test_the_draw_is_the_seeded_normal_scaled_and_shifted(tmp_path, vocabulary):
    matrix, _ = initial_embedding(vocabulary, vectors(tmp_path, "a 1 2\ndog 3 8\n"), 2, seed=7)
    plain = np.random.default_rng(7).standard_normal((6, 2))
    for word in ("emu", "<start>", "<end>"):
        number = vocabulary.index[word]
        assert matrix[number] == pytest.approx(np.array([2, 5]) + np.array([1, 3]) * plain[number], rel=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 2\na 1 2\ndog 3 4\n", {"a": [1, 2], "dog": [3, 4]}),  # the header of word2vec
        ("\ufeffa 1 2\ndog 3 4\n", {"a": [1, 2], "dog": [3, 4]}),
        ("\ufeff2 2\na 1 2\ndog 3 4\n", {"a": [1, 2], "dog": [3, 4]}),
        ("7 1 2\n8 3 4\n", {"7": [1, 2], "8": [3, 4]}),
        ("dog 1 2\r\n. . . 3 4\r\nat name@x.org 5 6", {"dog": [1, 2], ". . .": [3, 4], "at name@x.org": [5, 6]}),
    ],
)
def test_lines_are_words_and_numbers(tmp_path, text, expected):
    assert read(tmp_path, text) == (expected, [])


def test_damaged_lines_are_passed_over_and_named(tmp_path, vocabulary):
    text = b"a 1 2\ndog 3\nemu 1 x\n\nemu nan 2\n\xff\xfe 1 2\ndog 3 4\nemu 1 inf\n"
    assert read(tmp_path, text) == ({"a": [1, 2], "dog": [3, 4]}, [2, 3, 4, 5, 6, 8])
    _, coverage = initial_embedding(vocabulary, vectors(tmp_path, text), 2, seed=0)
    assert coverage["file"]["bad_lines"] == {"count": 6, "numbers": [2, 3, 4, 5, 6, 8]}
    assert any("2, 3, 4, 5, 6, 8" in line for line in describe_coverage(coverage))


@pytest.mark.parametrize("text", ["a 1 2 3\ndog 1 2 3\n", "100 3\na 1 2 3\n"])
def test_another_dimension_is_named(tmp_path, vocabulary, text):
    with pytest.raises(UserError, match=r"dimension 3, not 2 .*correct word_vectors.dimension"):
        initial_embedding(vocabulary, vectors(tmp_path, text), 2, seed=0)


def test_a_file_without_any_word_of_the_vocabulary_is_a_mistake(tmp_path, vocabulary):
    with pytest.raises(UserError, match="no word of the vocabulary"):
        initial_embedding(vocabulary, vectors(tmp_path, "the 1 2\n"), 2, seed=0)
    with pytest.raises(UserError, match="cannot read the word vectors"):
        initial_embedding(vocabulary, tmp_path / "none.txt", 2, seed=0)
