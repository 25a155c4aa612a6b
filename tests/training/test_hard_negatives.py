"""The paper's rule case by case."""

import math

import pytest
import torch

from vitcapr.training.contrastive import mined_loss


def loss_of(similarity: list[list[float]], owner: list[int], rule: str, temperature: float = 0.1) -> float:
    table, index = torch.tensor(similarity), torch.tensor(owner)
    return float(mined_loss(table, index, torch.tensor(temperature), rule))  # type: ignore[arg-type]


def surprise(true: float, hard: float, temperature: float = 0.1) -> float:
    return math.log(1 + math.exp((hard - true) / temperature))


def test_the_second_of_the_two_most_similar() -> None:
    """The true caption first: the best wrong one. Third or worse: the second best wrong one. Second: none."""
    rows = [
        [0.9, 0.8, 0.1, 0.0],  # true caption 0 is first: 0.8
        [0.7, 0.5, 0.6, 0.1],  # true caption 1 is third: 0.6
        [0.1, 0.6, 0.5, 0.2],  # true caption 2 is second: none
        [0.3, 0.2, 0.4, 0.3],  # true caption 3 ties with 0.3: counted behind 0.4, level with 0.3, so it is second: none
    ]
    expected = surprise(0.9, 0.8) + surprise(0.5, 0.6)
    assert loss_of(rows, [0, 1, 2, 3], "second") == pytest.approx(expected / 4, rel=1e-5)
    hardest = surprise(0.9, 0.8) + surprise(0.5, 0.7) + surprise(0.5, 0.6) + surprise(0.3, 0.4)
    assert loss_of(rows, [0, 1, 2, 3], "hardest") == pytest.approx(hardest / 4, rel=1e-5)


def test_other_captions_of_the_image_are_left_out() -> None:
    rows = [[0.2, 0.9, 0.1], [0.0, 0.0, 0.5]]
    expected = surprise(0.2, 0.1) + surprise(0.9, 0.1) + surprise(0.5, 0.0)
    for rule in ("second", "hardest"):
        assert loss_of(rows, [0, 0, 1], rule) == pytest.approx(expected / 3, rel=1e-5)


def test_without_a_wrong_caption_there_is_no_loss_and_no_nan() -> None:
    similarity = torch.tensor([[0.3, 0.4]], requires_grad=True)
    owner = torch.tensor([0, 0])
    value = mined_loss(similarity, owner, torch.tensor(0.1), "second")
    value.backward()
    assert float(value) == 0
    assert similarity.grad.tolist() == [[0.0, 0.0]]


def test_a_single_wrong_caption_before_the_true_one_leaves_none() -> None:
    """Two captions in all: if the wrong one is first, the second is the true one."""
    assert loss_of([[0.1, 0.4], [0.0, 0.9]], [0, 1], "second") == pytest.approx(surprise(0.9, 0.0) / 2, rel=1e-5)
