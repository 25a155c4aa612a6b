"""Dropout of the captioners."""

import torch

from vitcapr.models.dropout import Dropout


def test_what_is_kept_and_its_gradient_are_scaled_alike() -> None:
    torch.manual_seed(0)
    given = torch.ones(200, 100, requires_grad=True)
    found = Dropout(0.2)(given)
    found.sum().backward()
    assert set(found.unique().tolist()) == {0, 1.25}
    assert abs(float((found != 0).float().mean()) - 0.8) < 0.01
    assert given.grad is not None
    assert torch.equal(given.grad, found.detach())


def test_the_seed_decides_and_the_dtype_stays() -> None:
    given = torch.ones(50, dtype=torch.bfloat16)
    torch.manual_seed(3)
    first = Dropout(0.5)(given)
    torch.manual_seed(3)
    assert torch.equal(Dropout(0.5)(given), first)
    assert first.dtype == torch.bfloat16


def test_nothing_is_dropped_in_evaluation_or_without_a_share() -> None:
    given = torch.randn(50)
    assert torch.equal(Dropout(0.5).eval()(given), given)
    assert torch.equal(Dropout(0.0)(given), given)
