import pytest
import torch
from torch import nn

from vitcapr.training.optimizer import WeightAverage


def one_weight(value: float) -> nn.Module:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, value)
    return model


def test_average_by_hand() -> None:
    model = one_weight(0.0)
    average = WeightAverage(model, decay=0.5)
    for value in (1.0, 2.0):
        nn.init.constant_(model.weight, value)  # type: ignore[arg-type]
        average.update()
    # decay min(0.5, 1/10) = 0.1: 0.1 * 0 + 0.9 * 1 = 0.9; then min(0.5, 2/11): 2/11 * 0.9 + 9/11 * 2 = 1.8
    assert average.state()["weight"].item() == pytest.approx(1.8)


def test_applied_and_taken_back() -> None:
    model = one_weight(0.0)
    average = WeightAverage(model, decay=0.9)
    nn.init.constant_(model.weight, 1.0)  # type: ignore[arg-type]
    average.update()
    with average.applied():
        assert model.weight.item() == pytest.approx(0.9)  # type: ignore[operator]
    assert model.weight.item() == 1.0  # type: ignore[operator]


def test_no_decay_is_the_weights_themselves() -> None:
    model = one_weight(3.0)
    average = WeightAverage(model, decay=0.0)
    nn.init.constant_(model.weight, 4.0)  # type: ignore[arg-type]
    average.update()
    with average.applied():
        assert torch.equal(average.state()["weight"], torch.tensor([[4.0]]))
