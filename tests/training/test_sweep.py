"""Which training of a sweep is kept, that it is the one that the rate alone gives, and that a stop loses nothing."""

import math
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from tests.checkpoints import snapshot
from tests.training.trained import feature_task
from vitcapr.config.training import PhaseConfig, RetrieverPhaseConfig, TrainingConfig
from vitcapr.encoders import devices
from vitcapr.errors import Preempted
from vitcapr.formats.model import read_model
from vitcapr.models.dual_encoder_model import build_dual_encoder
from vitcapr.progress import Reporter
from vitcapr.training.loop import Diverged
from vitcapr.training.outcome import TrainingJob, with_rate
from vitcapr.training.retriever_task import RetrieverTask

CPU = torch.device("cpu")
RATES = [0.00001, 0.03, 0.3]
CARD: dict[str, Any] = {"architecture": {}, "settings": {}, "inputs": {}, "code": ""}


def make_task() -> RetrieverTask:
    return feature_task(RetrieverPhaseConfig(epochs=1, batch_images=4, mixup=0.2))


def job(folder: Path, output: StringIO | None = None, card: dict[str, Any] = CARD) -> TrainingJob:
    return TrainingJob(folder, card, 0, CPU, Reporter(stream=output or StringIO()))


def sweep(
    folder: Path,
    task: Any,
    rates: list[float] = RATES,
    select_by: str = "rsum",
    dtype: torch.dtype = torch.float32,
    output: StringIO | None = None,
) -> None:
    phases = [PhaseConfig(epochs=2, learning_rate=1.0, schedule="cosine")]
    job(folder, output).train(task, TrainingConfig(phases=phases, select_by=select_by), dtype, sweep=rates)


@pytest.mark.parametrize("part", ["architecture", "settings", "inputs", "code", "language_model"])
def test_every_ingredient_of_a_training_decides_its_state(tmp_path: Path, part: str) -> None:
    card = {**CARD, "language_model": {"weights_sha256": "a"}}
    other = {**card, part: {"weights_sha256": "b"}}
    one, another = (job(tmp_path, card=each).state_folder(torch.float32) for each in (card, other))
    assert one != another


def test_other_phases_keep_their_ratio() -> None:
    phases = [PhaseConfig(epochs=1, learning_rate=0.2), PhaseConfig(epochs=3, learning_rate=0.1, schedule="cosine")]
    scaled = with_rate(TrainingConfig(phases=phases), 0.02).phases
    assert [phase.learning_rate for phase in scaled] == pytest.approx([0.02, 0.01])
    assert scaled[1].schedule == "cosine"


@pytest.mark.parametrize("select_by", ["rsum", "loss"])
def test_the_best_is_kept(tmp_path: Path, select_by: str) -> None:
    sweep(tmp_path / "all", make_task, select_by=select_by)
    table = pd.read_csv(tmp_path / "all" / "sweep.csv")
    assert table["learning_rate"].tolist() == RATES
    scores = table[f"validation_{select_by}"]
    best = scores.idxmin() if select_by == "loss" else scores.idxmax()
    assert table["chosen"].tolist() == [int(row == best) for row in range(3)]
    assert scores.nunique() == 3
    sweep(tmp_path / "alone", make_task, [RATES[best]], select_by)
    for name, weights in read_model(tmp_path / "alone")[0].items():
        assert torch.equal(read_model(tmp_path / "all")[0][name], weights), name
    assert (tmp_path / "all" / "history.csv").read_text() == (tmp_path / "alone" / "history.csv").read_text()


def test_of_equal_scores_the_smaller_loss_is_kept(tmp_path: Path) -> None:
    losses = iter([0.7, 0.7, 0.2, 0.2, 0.5, 0.5])

    def make() -> RetrieverTask:
        task = make_task()
        task.validate = lambda: {"validation_loss": next(losses), "validation_rsum": 300.0}
        return task

    sweep(tmp_path, make)
    assert pd.read_csv(tmp_path / "sweep.csv")["chosen"].tolist() == [0, 1, 0]


def diverging(*numbers: int) -> Any:
    """Tasks of which some, counted from 1, have a score that is not a number."""
    made: list[RetrieverTask] = []

    def make() -> RetrieverTask:
        task = make_task()
        made.append(task)
        if len(made) in numbers:
            validate = task.validate
            task.validate = lambda: dict.fromkeys(validate(), math.nan)
        return task

    return make


@pytest.mark.parametrize("number", [1, 3])
def test_a_rate_that_diverges_is_not_chosen(tmp_path: Path, number: int) -> None:
    sweep(tmp_path / "some", diverging(number))
    table = pd.read_csv(tmp_path / "some" / "sweep.csv")
    assert table["learning_rate"].tolist() == RATES
    assert table["validation_rsum"].isna().tolist() == [row + 1 == number for row in range(3)]
    sweep(tmp_path / "others", make_task, [rate for place, rate in enumerate(RATES, 1) if place != number])
    for name in ("best.safetensors", "history.csv"):
        assert (tmp_path / "some" / name).read_bytes() == (tmp_path / "others" / name).read_bytes()


def test_without_a_trained_rate_there_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rate diverges, also where another process keeps the weights."""
    with pytest.raises(Diverged, match="not a number at epoch 1; lower the learning rate"):
        sweep(tmp_path, diverging(1, 2, 3))
    train_one = TrainingJob._train_one
    monkeypatch.setattr(TrainingJob, "_train_one", lambda *args: train_one(*args) and None)
    sweep(tmp_path / "another", diverging(3))
    with pytest.raises(Diverged):
        sweep(tmp_path / "all", diverging(1, 2, 3))
    assert not list(tmp_path.rglob("card.json"))


def test_a_stopped_sweep_continues_with_the_same_result(tmp_path: Path) -> None:
    sweep(tmp_path / "whole", make_task)
    made: list[RetrieverTask] = []

    def stopping() -> RetrieverTask:
        task = make_task()
        made.append(task)
        if len(made) == 2:
            validate, epochs = task.validate, []

            def stop_after_the_first() -> dict[str, float]:
                epochs.append(1)
                if len(epochs) == 2:
                    raise Preempted("asked to")
                return validate()

            task.validate = stop_after_the_first
        return task

    with pytest.raises(Preempted):
        sweep(tmp_path / "parts", stopping)
    text = StringIO()
    (state,) = (tmp_path / "parts/checkpoint").iterdir()
    before = snapshot(state)
    assert job(tmp_path / "parts", text).dtype("auto") == torch.float32
    assert bool(text.getvalue()) == devices.cpu_has_bfloat16(), "another machine keeps the arithmetic and says so"
    sweep(tmp_path / "parts", make_task, dtype=torch.bfloat16, output=text)
    assert f"an unfinished training with precision float32 is kept until this one ends ({state})" in text.getvalue()
    assert snapshot(state) == before
    torch.manual_seed(5)
    sweep(tmp_path / "parts", make_task)
    for name in ("best.safetensors", "history.csv", "card.json", "sweep.csv"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_a_model_that_has_nothing_to_learn_leaves_all_its_files(tmp_path: Path) -> None:
    architecture = {
        "embedding_dim": 6,
        "temperature": 0.1,
        "learn_temperature": False,
        "image": {"feature_dim": 6, "head": "none"},
        "text": {"kind": "features", "feature_dim": 6, "head": "none"},
    }
    task = feature_task()
    task.model = build_dual_encoder(architecture)
    job(tmp_path).train(lambda: task, TrainingConfig(phases=[]), torch.float32, sweep=[])
    assert pd.read_csv(tmp_path / "history.csv").empty
    assert pd.read_csv(tmp_path / "sweep.csv").empty
    assert (tmp_path / "gpu.csv").read_text().startswith("# nothing was trained\n")
    weights, card = read_model(tmp_path)
    assert card["best_epoch"] == 0
    assert card["best_score"] == {}
    assert set(weights) == {"log_scale"}
