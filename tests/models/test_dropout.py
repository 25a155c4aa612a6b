import pytest
import torch

from vitcapr.models.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_share_and_scale(p: float) -> None:
    torch.manual_seed(0)
    ones = torch.ones(1001, 301)
    dropped = Dropout(p).train()(ones)
    assert (dropped == 0).float().mean().item() == pytest.approx(p, abs=0.005)
    assert dropped.max().item() == pytest.approx(1 / (1 - p))
    assert dropped.mean().item() == pytest.approx(1, abs=0.03)


def test_elements_are_independent() -> None:
    torch.manual_seed(0)
    dropped = (Dropout(0.5).train()(torch.ones(40_000)) == 0).float()
    for distance in range(1, 6):
        both = (dropped[distance:] * dropped[:-distance]).mean().item()
        assert both == pytest.approx(0.25, abs=0.015)


def test_identity_outside_training_and_same_seed_same_mask() -> None:
    values = torch.randn(7, 3)
    assert Dropout(0.5).eval()(values) is values
    masks = []
    for _ in range(2):
        torch.manual_seed(5)
        masks.append(Dropout(0.5).train()(torch.ones(99)))
    torch.testing.assert_close(masks[0], masks[1], rtol=0, atol=0)
