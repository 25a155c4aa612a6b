"""Vectors of sentences against transformers alone, one sentence at a time, and means of word vectors by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertModel

from tests.checkpoints import save_bert
from tests.encoders.two_towers import ROOM, load_text
from vitcapr.encoders import text_encoders
from vitcapr.encoders.checkpoints import digest_with_tokenizer
from vitcapr.encoders.text_encoders import TextRecipe
from vitcapr.encoders.text_towers import WordVectorEncoder
from vitcapr.errors import UserError

WORDS = ["a", "dog", "cat", "runs", "sits", "on", "the", "grass", "##s", "red", "."]
TEXTS = ["A dog runs on the grass .", "cat", "", "the cats sit", "a red red red dog runs and sits on a red cat ."]


def checkpoint(folder: Path) -> Path:
    return save_bert(folder, WORDS, num_hidden_layers=2, max_position_embeddings=ROOM)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("bert"))


def hidden(folder: Path, text: str) -> np.ndarray:
    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.inference_mode():
        return np.asarray(BertModel.from_pretrained(folder).eval()(**tokens).last_hidden_state[0])


def test_vectors_are_those_of_transformers_alone(bert: Path) -> None:
    states = [hidden(bert, text) for text in TEXTS]
    assert len({len(state) for state in states}) == len(TEXTS)
    mean, first = load_text(bert, "mean"), load_text(bert, "cls")
    assert mean.dim == 8
    np.testing.assert_allclose(mean.encode(TEXTS), [state.mean(0) for state in states], atol=1e-5)
    np.testing.assert_allclose(first.encode(TEXTS), [state[0] for state in states], atol=1e-5)
    assert mean.encode(TEXTS).dtype == np.float32
    assert mean.encode([]).shape == (0, 8)


@pytest.mark.parametrize("batch", [1, 2, 64])
def test_a_sentence_does_not_depend_on_its_neighbours(bert: Path, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_encoders, "_BATCH", batch)
    encoder = load_text(bert)
    order = [3, 0, 4, 4, 1, 2]
    alone = np.concatenate([encoder.encode([TEXTS[index]]) for index in order])
    np.testing.assert_allclose(encoder.encode([TEXTS[index] for index in order]), alone, atol=1e-5)
    assert np.abs(alone[0] - alone[1]).max() > 0.1


def test_long_captions_are_cut(bert: Path) -> None:
    encoder = load_text(bert, max_length=4)
    assert [len(tokens) for tokens in encoder.tokenize(TEXTS)] == [4, 3, 2, 4, 4]
    np.testing.assert_array_equal(encoder.encode(["the dog runs"]), encoder.encode(["the dog sits on grass"]))


def test_the_digest_sees_weights_and_tokenizer(bert: Path, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "copy")
    digest = digest_with_tokenizer(folder)
    assert digest_with_tokenizer(bert) == digest
    for name in ("tokenizer.json", "config.json"):
        path = folder / name
        before = path.read_bytes()
        path.write_bytes(before + b" ")
        assert digest_with_tokenizer(folder) != digest
        path.write_bytes(before)


def test_a_caption_is_the_mean_of_its_words(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("dog 3 0\na 0 4\ndog 0 9\n")
    encoder = WordVectorEncoder(tmp_path / "v.txt")
    found = encoder.encode(["A dog!", "dog a dog", "zebra", "the dog"])
    # The first of two vectors counts, a word without one does not.
    np.testing.assert_allclose(found, [[1.5, 2], [2, 4 / 3], [0, 0], [3, 0]], rtol=1e-6)
    assert found.dtype == np.float32
    assert encoder.dim == 2


def words(source: str) -> TextRecipe:
    options = {"revision": "main", "pool": "mean", "dtype": "float32", "max_length": 8}
    return TextRecipe(source, torch.device("cpu"), output="word_vectors", **options)


def test_the_data_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("data", "here"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "v.txt").write_text(f"{folder} 1\n")
    monkeypatch.chdir(tmp_path / "here")
    assert words("v.txt").checkpoint.folder == Path("v.txt")
    monkeypatch.setenv("VITCAPR_DATA", str(tmp_path / "data"))
    assert words("v.txt").checkpoint.folder == tmp_path / "data" / "v.txt"
    with pytest.raises(UserError, match="no such file of word vectors"):
        words("w.txt").load()
    (tmp_path / "here" / "empty.txt").write_text("")
    with pytest.raises(UserError, match="holds no word vectors"):
        words("empty.txt").load()
