import math

import pytest
import torch

from vitcapr.training import cross_entropy
from vitcapr.training.cross_entropy import smoothed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("chunk", [1, 14, 1 << 19])
def test_value_and_gradient_equal_torchs(smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cross_entropy._CHUNK_ELEMENTS, "cpu", chunk)
    generator = torch.Generator().manual_seed(0)
    logits = (5 * torch.randn(9, 7, generator=generator)).requires_grad_()
    targets = torch.randint(7, (9,), generator=generator)
    ours = smoothed_cross_entropy(logits, targets, smoothing)
    theirs = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs)
    (mine,), (reference,) = (torch.autograd.grad(3 * loss, logits) for loss in (ours, theirs))
    torch.testing.assert_close(mine, reference, rtol=1e-5, atol=1e-7)


def test_by_hand() -> None:
    """Odds of 3 to 1: -log(3/4) for the target; with a smoothing of one half, a quarter goes to each class as well."""
    logits, targets = torch.tensor([[math.log(3), 0.0]]), torch.tensor([0])
    assert smoothed_cross_entropy(logits, targets, 0.0).item() == pytest.approx(-math.log(3 / 4))
    expected = -(0.75 * math.log(3 / 4) + 0.25 * math.log(1 / 4))
    assert smoothed_cross_entropy(logits, targets, 0.5).item() == pytest.approx(expected)


def test_extreme_logits_stay_finite() -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    loss = smoothed_cross_entropy(logits, torch.tensor([1]), 0.0)
    assert loss.item() == pytest.approx(2e4)
    loss.backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[1.0, -1.0, 0.0]]))
