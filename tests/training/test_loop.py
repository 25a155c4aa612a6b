"""The training loop on a small regression: what it keeps, where it stops, and that nothing is lost by stopping."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.training import trained
from tests.training.trained import StopsBefore, assert_continues, assert_same, train_in
from vitcapr.config.training import PhaseConfig, TrainingConfig
from vitcapr.errors import UserError
from vitcapr.progress import Reporter
from vitcapr.training import loop
from vitcapr.training.loop import Diverged, Trainer
from vitcapr.training.saved_state import read_tensors

BATCHES = 5


class _Line:
    """Fit y = 2x."""

    def __init__(self, scores: list[float] | None = None) -> None:
        torch.manual_seed(0)
        self.model: nn.Module = nn.Sequential(nn.Dropout(0.2), nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.scores = scores

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[Tensor]:  # noqa: ARG002
        for number in range(start, BATCHES):
            yield torch.randn(8, 3, generator=torch.Generator().manual_seed(100 * epoch + number))

    def steps(self, phase: int) -> int:  # noqa: ARG002
        return BATCHES

    def loss(self, batch: Tensor) -> tuple[Tensor, int]:
        return (self.model(batch)[:, 0] - 2 * batch[:, 0]).square().mean(), len(batch)

    def validate(self) -> dict[str, float]:
        if self.scores is not None:
            return {"validation_loss": self.scores.pop(0)}
        batch = torch.randn(32, 3, generator=torch.Generator().manual_seed(1))
        assert not self.model.training
        return {"validation_loss": float(self.loss(batch)[0])}


class Line(StopsBefore, _Line):
    pass


PHASES = [
    PhaseConfig(epochs=2, learning_rate=0.05, schedule="cosine", warmup_steps=2),
    PhaseConfig(epochs=2, learning_rate=0.01),
]
RECIPE = TrainingConfig(phases=PHASES, ema_decay=0.9)


def trainer(task: Line, folder: Path, recipe: TrainingConfig = RECIPE) -> Trainer[Tensor]:
    return trained.trainer(task, folder, recipe)


def test_of_equal_scores_the_smaller_loss_is_best(tmp_path: Path) -> None:
    """Recall on two images has few values, and the first epoch would win."""
    found = [(3.0, 6.0), (2.0, 6.0), (2.0, 6.0), (1.0, 5.0)]

    class Ranked(Line):
        def validate(self) -> dict[str, float]:
            return dict(zip(("validation_loss", "validation_rsum"), found.pop(0), strict=True))

    end = trainer(Ranked(), tmp_path, RECIPE.model_copy(update={"select_by": "rsum"})).run()
    assert (end.best_epoch, end.best_score) == (2, 6.0)


@pytest.mark.parametrize(("stop_before", "unread"), [(1, 1), (4, 1), (7, 1), (19, 1), (7, 4)])
def test_stopped_and_continued_equals_uninterrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_before: int, unread: int
) -> None:
    monkeypatch.setitem(loop._STEPS_UNREAD, "cpu", unread)
    assert_continues(tmp_path, Line, RECIPE, stop_before)


@pytest.mark.parametrize("steps", [2, 100])
def test_killed_between_saves_repeats_the_lost_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr(loop, "_SAVE_STEPS", steps)
    whole = train_in(tmp_path / "whole", Line(), RECIPE)

    class Killed(Line):
        def loss(self, batch: Tensor) -> tuple[Tensor, int]:
            if self.seen == 10:
                raise KeyboardInterrupt
            return super().loss(batch)

    with pytest.raises(KeyboardInterrupt):
        trainer(Killed(), tmp_path / "parts").run()
    assert_same(whole, train_in(tmp_path / "parts", Line(), RECIPE))


@pytest.mark.parametrize(("seconds", "saves"), [(0.0, 4 + 1), (1e9, 1)])
def test_the_state_is_saved_after_an_epoch_if_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, saves: int
) -> None:
    written = []
    monkeypatch.setattr("vitcapr.training.loop._SECONDS", seconds)
    monkeypatch.setattr(Trainer, "_write", lambda self, _: written.append(self.position.epoch))
    monkeypatch.setattr(loop, "_SAVE_STEPS", 100)
    trainer(Line(), tmp_path).run()
    assert len(written) == saves


@pytest.mark.parametrize("unread", [1, 3, 20])
def test_a_step_whose_loss_is_read_later_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unread: int) -> None:
    """And no state is saved that has learnt from it."""

    class Breaks(Line):
        def loss(self, batch: Tensor) -> tuple[Tensor, int]:
            loss, items = super().loss(batch)
            return loss * (torch.nan if self.seen == BATCHES + 2 else 1), items

    monkeypatch.setitem(loop._STEPS_UNREAD, "cpu", unread)
    with pytest.raises(Diverged, match="not a number at epoch 2, batch 2"):
        trainer(Breaks(), tmp_path).run()
    saved = read_tensors(tmp_path / "state.safetensors")
    assert not any(tensor.isnan().any() for tensor in saved[0].values() if tensor.is_floating_point())


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    first, again = trainer(Line(), tmp_path).run(), Line()
    assert trainer(again, tmp_path).run() == first
    assert again.seen == 0


def test_the_best_epoch(tmp_path: Path) -> None:
    end = trainer(Line(scores=[3.0, 1.0, 2.0, 1.5]), tmp_path).run()
    assert end.best_epoch == 2
    assert len(end.history) == 4


def test_a_group_of_weights_has_a_share_of_the_rate(tmp_path: Path) -> None:
    task = Line()
    weights = list(task.model.parameters())
    rates = [(weights[:1], 1.0), (weights[1:], 0.25)]
    recipe = TrainingConfig(phases=[PhaseConfig(epochs=1, learning_rate=0.02, schedule="constant", warmup_steps=0)])
    options: dict[str, Any] = {"device": torch.device("cpu"), "dtype": torch.float32, "reporter": Reporter()}
    training = Trainer(task, recipe, folder=tmp_path, rates=rates, **options)
    training.run()
    assert [group["lr"] for group in training.optimizer.param_groups] == [0.02, 0.005]


def test_a_score_that_is_no_number_is_one_line_and_never_the_best(tmp_path: Path) -> None:
    """The last step of an epoch may break the weights without a loss that shows it."""
    with pytest.raises(UserError, match="validation_loss is not a number at epoch 2; lower the learning rate"):
        trainer(Line(scores=[1.0, float("nan")]), tmp_path).run()
    with pytest.raises(UserError, match="validation_loss is not a number at epoch 1"):
        trainer(Line(scores=[float("nan")] * 4), tmp_path / "first").run()
    assert not (tmp_path / "first/best.safetensors").exists()
