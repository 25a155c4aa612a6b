"""Pieces of words."""

from pathlib import Path

import pytest

from tests.models.networks import save_language_model
from vitcapr.encoders.checkpoints import open_tokenizer
from vitcapr.encoders.language_models import Pieces

TEXTS = ["a dog runs", "the big dog runs", "a big dog", "über straße"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_language_model(tmp_path / "tiny", TEXTS)


def test_pieces_join_to_the_words(folder: Path) -> None:
    pieces = Pieces(str(folder), "main")
    assert pieces.cut(["big", "dog"]) == [" big", " dog"]
    words = ["dogs", "bug"]
    assert "".join(pieces.cut(words)) == " dogs bug"
    assert pieces.cut(["big", "ñ", "dog"]) == [" big", " dog"]  # Its two bytes are two pieces, and no characters.
    tokenizer = open_tokenizer(folder)
    pad, start, end, dog = pieces.rows([" dog"])
    assert (start, pad, end) == (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.eos_token_id)
    assert tokenizer.decode([dog]) == " dog"
