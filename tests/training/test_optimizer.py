"""An optimiser that goes on from its state, the learning rates, and the average."""

from typing import Any

import pytest
import torch
from torch import nn

from vitcapr.config.training import PhaseConfig, RetrieverPhaseConfig
from vitcapr.training.optimizer import (
    WeightAverage,
    build_optimizer,
    optimizer_tensors,
    rate_at,
    restore_optimizer,
)


def model() -> nn.Module:
    torch.manual_seed(1)
    layers = nn.ModuleDict({"words": nn.Embedding(9, 5), "out": nn.Linear(5, 2), "unused": nn.Linear(3, 3)})
    layers["unused"].requires_grad_(False)
    return layers


def groups(layers: nn.Module) -> list[tuple[list[nn.Parameter], float]]:
    weights = list(layers.parameters())
    return [(weights[:2], 1.0), (weights[2:], 0.1)]


def train(layers: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> list[torch.Tensor]:
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / (step + 1) * group["scale"]
        words = torch.randint(9, (4,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        layers["out"](layers["words"](words)).square().sum().backward()
        optimizer.step()
    return [weight.detach().clone() for weight in layers.parameters()]


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_training_goes_on_from_what_is_remembered(kind: str) -> None:
    whole, stopped, continued = model(), model(), model()
    expected = train(whole, build_optimizer(kind, groups(whole), 0.01), range(6))
    first = build_optimizer(kind, groups(stopped), 0.01)
    train(stopped, first, range(3))
    continued.load_state_dict(stopped.state_dict())
    second = build_optimizer(kind, groups(continued), 0.01)
    restore_optimizer(second, {name: tensor.clone() for name, tensor in optimizer_tensors(first).items()})
    found = train(continued, second, range(3, 6))
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


def rates(steps: int, **phase: Any) -> list[float]:
    return [rate_at(PhaseConfig(**phase), step, steps) for step in range(steps)]


def test_learning_rates_by_hand() -> None:
    assert rates(3, epochs=1, learning_rate=0.1) == [0.1, 0.1, 0.1]
    for steps, warmup in ((9, 0), (48, 4), (2000, 100)):
        risen = rates(steps, epochs=1, learning_rate=1.0, warmup_steps=None)
        assert next(step for step, rate in enumerate(risen, 1) if rate == 1.0) == max(1, warmup)
    linear = rates(7, epochs=1, learning_rate=1.0, schedule="linear", final_fraction=0.2, warmup_steps=2)
    assert linear == pytest.approx([0.5, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2])
    cosine = rates(5, epochs=1, learning_rate=2.0, schedule="cosine")
    assert cosine == pytest.approx([2.0, 1.7071068, 1.0, 0.2928932, 0.0])
    assert rates(2, epochs=1, learning_rate=2.0, schedule="cosine", warmup_steps=0) == pytest.approx([2.0, 0.0])
    # Six epochs of two steps, halved every two epochs, as StepLR(2, 0.5) does.
    phase = RetrieverPhaseConfig(epochs=6, learning_rate=0.4, schedule="step", step_epochs=2, gamma=0.5)
    assert [rate_at(phase, step, 12) for step in range(12)] == [0.4] * 4 + [0.2] * 4 + [0.1] * 4


@pytest.mark.parametrize(("decay", "averaged"), [(0.5, 1.8), (0.0, 2.0)])
def test_average_by_hand(decay: float, averaged: float) -> None:
    """The decay min(0.5, 1/10): 0.1 * 0 + 0.9 * 1 = 0.9; then min(0.5, 2/11): 2/11 * 0.9 + 9/11 * 2 = 1.8."""
    model = nn.Linear(1, 1, bias=False)
    model.register_buffer("ids", torch.tensor([0]))
    nn.init.constant_(model.weight, 0.0)
    average = WeightAverage(model, decay)
    for value in (1.0, 2.0):
        nn.init.constant_(model.weight, value)
        model.ids.fill_(int(value))  # type: ignore[operator]
        average.update()
    assert average.state()["ids"].tolist() == [2]
    assert average.state()["weight"].item() == pytest.approx(averaged)
    with average.applied():
        assert model.weight.item() == pytest.approx(averaged)
    assert model.weight.item() == 2.0
