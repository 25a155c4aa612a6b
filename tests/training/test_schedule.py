import pytest

from vitcapr.training.schedule import Phase


def test_constant() -> None:
    assert [Phase(1, 0.1).rate_at(step, 3) for step in range(3)] == [0.1, 0.1, 0.1]


def test_warmup_then_linear_to_the_end() -> None:
    phase = Phase(1, 1.0, "linear", final_fraction=0.2, warmup_steps=2)
    assert [phase.rate_at(step, 7) for step in range(7)] == pytest.approx([0.5, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2])


def test_step_goes_down_by_whole_epochs() -> None:
    """Six epochs of two steps, halved every two epochs, as StepLR(2, 0.5) does."""
    phase = Phase(6, 0.4, "step", step_epochs=2, gamma=0.5)
    assert [phase.rate_at(step, 12) for step in range(12)] == [0.4] * 4 + [0.2] * 4 + [0.1] * 4


def test_cosine() -> None:
    phase = Phase(1, 2.0, "cosine")
    assert [phase.rate_at(step, 5) for step in range(5)] == pytest.approx([2.0, 1.7071068, 1.0, 0.2928932, 0.0])
