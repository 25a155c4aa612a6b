"""Weights and their card belong together."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.checkpoints import flip_bit
from vitcapr.errors import UserError
from vitcapr.formats.model import WEIGHTS, read_model, rebuild, write_card, write_model


def test_weights_and_card_come_back(tmp_path: Path) -> None:
    write_model(tmp_path, {"a": torch.arange(3.0)}, {"best_epoch": 2, "architecture": {}})
    weights, card = read_model(tmp_path)
    assert weights["a"].tolist() == [0, 1, 2]
    assert card["best_epoch"] == 2


def test_one_flipped_bit_a_card_without_the_digest_and_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    write_model(tmp_path, {"a": torch.arange(3.0)}, {})
    flip_bit(tmp_path / WEIGHTS, -2)
    with pytest.raises(UserError, match=r"damaged weights: card\.json was written with others") as caught:
        read_model(tmp_path)
    assert str(tmp_path / WEIGHTS) in str(caught.value)
    assert caught.value.remedy == "train the model again"
    write_model(tmp_path, {"a": torch.arange(3.0)}, {})
    write_card(tmp_path, {})
    with pytest.raises(UserError, match="damaged weights"):
        read_model(tmp_path)
    write_model(tmp_path, {"a": torch.tensor([1.0, float("nan")])}, {})
    with pytest.raises(UserError, match="not all of them are finite"):
        read_model(tmp_path)


WRONG = [{}, {"width": -1}, {"width": 4}, {"width": "a"}, {"width": 2**62}, {"width": 3, "members": 10**9}]


@pytest.mark.parametrize("architecture", WRONG)
def test_a_card_of_other_weights_is_one_line(tmp_path: Path, architecture: dict[str, Any]) -> None:
    weights = torch.nn.Linear(3, 1).state_dict()
    with pytest.raises(UserError, match="the card describes no model of these weights"):
        rebuild(tmp_path, lambda found: torch.nn.Linear(found["width"], 1), {"architecture": architecture}, weights)
