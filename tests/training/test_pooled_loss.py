"""Equation 4 of Peng 2025 against the equation written out, and what is odd about it."""

import math

import pytest
import torch

from vitcapr.training.contrastive import pooled_loss

TAU = torch.tensor(0.1)


def test_it_is_the_equation() -> None:
    similarity = torch.tensor([[0.9, 0.1], [-0.2, 0.5]])
    true = math.exp(9) + math.exp(5)
    wrong = math.exp(1) + math.exp(-2)
    expected = -math.log(true / wrong) + 0.25
    assert float(pooled_loss(similarity, torch.arange(2), TAU, 0.25)) == pytest.approx(expected, rel=1e-5)


def test_captions_of_one_image_are_no_wrong_pairs() -> None:
    similarity = torch.tensor([[0.9, 0.8, 0.1], [-0.2, 0.3, 0.5]])
    true = sum(math.exp(10 * value) for value in (0.9, 0.8, 0.5))
    wrong = sum(math.exp(10 * value) for value in (0.1, -0.2, 0.3))
    loss = pooled_loss(similarity, torch.tensor([0, 0, 1]), TAU, 0.0)
    assert float(loss) == pytest.approx(-math.log(true / wrong), rel=1e-5)


def test_the_least_shift_makes_the_best_batch_zero() -> None:
    best = 2 * torch.eye(20) - 1
    index = torch.arange(20)
    assert float(pooled_loss(best, index, TAU)) == pytest.approx(0, abs=1e-4)
    assert float(pooled_loss(best, index, TAU, 0.0)) == pytest.approx(math.log(19) - 20, rel=1e-5)


@pytest.mark.parametrize("shift", [None, 0.25])
def test_a_single_image_has_nothing_to_be_told_from(shift: float | None) -> None:
    """The last batch of an epoch may hold one."""
    similarity = torch.tensor([[0.9, -0.2]], requires_grad=True)
    loss = pooled_loss(similarity, torch.tensor([0, 0]), TAU, shift)
    loss.backward()
    assert float(loss) == 0
    assert similarity.grad is not None
    assert similarity.grad.tolist() == [[0.0, 0.0]]


def test_the_gradient_goes_to_the_pair_that_already_matches() -> None:
    similarity = torch.tensor([[0.9, 0.0], [0.0, 0.1]], requires_grad=True)
    pooled_loss(similarity, torch.arange(2), TAU).backward()
    assert similarity.grad is not None
    best, worst = similarity.grad.diagonal().tolist()
    assert best / worst == pytest.approx(math.exp(8), rel=1e-3)
