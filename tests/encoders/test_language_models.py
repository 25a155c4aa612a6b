"""Pieces of words, and a language model that has their rows alone."""

from pathlib import Path

import pytest
import torch

from tests.models.networks import save_language_model
from vitcapr.encoders.checkpoints import open_tokenizer
from vitcapr.encoders.language_models import Pieces
from vitcapr.encoders.networks.language_model import load_language_model

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


def test_the_rows_of_the_pieces_are_taken(folder: Path) -> None:
    rows = (1, 0, 1, 17, 5)
    whole = load_language_model(folder, range(len(open_tokenizer(folder))), torch.float32)
    part = load_language_model(folder, rows, torch.float32)
    assert part.get_output_embeddings().weight is part.get_input_embeddings().weight
    read = torch.tensor([[1, 3, 4]])
    expected = whole(input_ids=torch.tensor(rows)[read]).logits[..., rows]
    torch.testing.assert_close(part(input_ids=read).logits, expected)
