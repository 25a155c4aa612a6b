"""Weights and their card belong together."""

import json
from pathlib import Path

import pytest
import torch

from vitcapr.artefacts.model_card import CARD, WEIGHTS
from vitcapr.artefacts.model_folder import read_model, write_model
from vitcapr.errors import UserError


def test_weights_and_card_come_back(tmp_path: Path) -> None:
    write_model(tmp_path, {"a": torch.arange(3.0)}, {"best_epoch": 2})
    weights, card = read_model(tmp_path)
    assert weights["a"].tolist() == [0, 1, 2]
    assert card["best_epoch"] == 2


def test_one_flipped_bit_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path, {"a": torch.arange(3.0)}, {})
    content = bytearray((tmp_path / WEIGHTS).read_bytes())
    content[-2] ^= 1
    (tmp_path / WEIGHTS).write_bytes(content)
    with pytest.raises(UserError, match=r"damaged weights: card\.json was written with others") as caught:
        read_model(tmp_path)
    assert str(tmp_path / WEIGHTS) in str(caught.value)
    assert caught.value.remedy == "train the model again"


def test_a_card_without_the_digest_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path, {"a": torch.arange(3.0)}, {})
    card = json.loads((tmp_path / CARD).read_text())
    del card["weights_sha256"]
    (tmp_path / CARD).write_text(json.dumps(card))
    with pytest.raises(UserError, match="damaged weights"):
        read_model(tmp_path)
