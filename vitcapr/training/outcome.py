"""Runs a training, or one for each learning rate of a sweep, and writes its files: weights, card, history, GPU use."""

import math
import platform
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from vitcapr.config.training import TrainingConfig
from vitcapr.encoders.precision import dtype_name
from vitcapr.errors import UserError
from vitcapr.files import canonical_json, sha256_bytes, sha256_file, write_text
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import WEIGHTS, write_model
from vitcapr.formats.training import SWEEP, History, gpu_csv, write_history, write_sweep
from vitcapr.progress import Reporter
from vitcapr.training import distributed
from vitcapr.training.checkpoints import read_tensors
from vitcapr.training.loop import Diverged, Position, Task, Trainer, rank

Batch = TypeVar("Batch")
Rates = Iterable[tuple[list[nn.Parameter], float]]

CHECKPOINT = "checkpoint"
"""The folder in a model's folder from which a stopped training continues."""


@dataclass(frozen=True)
class Trained:
    """A training at its end.

    Attributes:
        weights: of the best epoch.
        gpu_use: the text of gpu.csv.
    """

    end: Position
    weights: dict[str, Tensor]
    gpu_use: str


def digests(data: Manifest, **files: Path | None) -> dict[str, str | None]:
    """Return the ``inputs`` of a card: the sha256 of each file or of the weights in a folder, and of all splits."""
    paths = {name: path / WEIGHTS if path is not None and path.is_dir() else path for name, path in files.items()}
    of_files = {name: None if path is None else sha256_file(path) for name, path in paths.items()}
    return {**of_files, "images": sha256_bytes("\n".join(data.image_table.column("split")).encode())}


def train_into(
    folder: Path,
    make_task: Callable[[], Task[Batch]],
    training: TrainingConfig,
    *,
    card: Mapping[str, Any],
    device: torch.device,
    dtype: torch.dtype,
    reporter: Reporter,
    sweep: Sequence[float] | None = None,
    rates_of: Callable[[nn.Module], Rates] | None = None,
    rows: Callable[[History], History] = lambda history: history,
) -> None:
    """Train, or continue, and write ``best.safetensors``, ``card.json``, ``history.csv`` and ``gpu.csv``.

    Without phases the model is left as it is.

    Args:
        make_task: a task with an untrained model, the same every time.
        card: what the model is and what it is made from; ``settings``, ``inputs`` and ``code`` say which unfinished
            training in ``folder/checkpoint`` may be continued. The outcome is added to it.
        sweep: learning rates of the first phase. One training for each; the best one on the validation split is left,
            and ``sweep.csv`` has the best epoch of each, or none where training diverged. Empty: the rate of the
            training; None: no ``sweep.csv``.
        rates_of: of an untrained model, the ``rates`` of :class:`Trainer`.
        rows: those of ``history.csv``.

    Raises:
        Preempted: a signal came; the state is saved, and the same call continues it. Trainings that have ended are not
            repeated.
        UserError: the loss is not a number at any rate, or the best weights are gone.
    """
    shared: dict[str, Any] = {"card": card, "dtype": dtype, "reporter": reporter}
    rates = sweep or [phase.learning_rate for phase in training.phases[:1]]
    table: list[dict[str, Any]] = []
    best: Trained | None = None
    diverged, chosen, best_rank = 0, -1, (-math.inf, -math.inf)
    if not rates:  # No score, for nothing is chosen.
        weights = {name: tensor.clone() for name, tensor in make_task().model.state_dict().items()}
        best = Trained(Position(), weights, gpu_csv("nothing was trained"))
    for rate in rates:
        task, state = make_task(), folder / CHECKPOINT
        if len(rates) > 1:
            reporter.line(f"learning rate {rate:g}")
            state /= f"{rate!r}"
        groups = None if rates_of is None else rates_of(task.model)
        try:
            trained = train_from(state, task, with_rate(training, rate), device=device, rates=groups, **shared)
        except Diverged as error:
            diverged += 1
            if diverged == len(rates):
                raise
            reporter.line(f"learning rate {rate:g}: {error.what}")
            table.append({"learning_rate": rate})
            continue
        if trained is None:
            continue
        end = trained.end
        row = end.history[end.best_epoch - 1]
        table.append({**row, "learning_rate": rate, "best_epoch": end.best_epoch})
        if best is None or rank(row, training.select_by) > best_rank:
            best, best_rank, chosen = trained, rank(row, training.select_by), len(table) - 1
    if best is None:
        return
    if sweep is not None:
        write_sweep(folder / SWEEP, [{**row, "chosen": int(number == chosen)} for number, row in enumerate(table)])
    end, column = best.end, f"validation_{training.select_by}"
    write_history(folder / "history.csv", rows(end.history))
    write_text(folder / "gpu.csv", best.gpu_use)
    outcome = {
        "best_epoch": end.best_epoch,
        "best_score": {} if end.best_score is None else {column: end.best_score},
        "precision": dtype_name(dtype),
        "versions": {"python": platform.python_version(), "torch": version("torch")},
    }
    write_model(folder, best.weights, {**card, **outcome})
    _remove_checkpoints(folder / CHECKPOINT)
    score = "nothing was trained" if end.best_score is None else f"{column} {end.best_score:.4f}"
    reporter.line(f"best epoch {end.best_epoch}: {score}")


def _remove_checkpoints(folder: Path) -> None:
    """Remove what a training that has ended would continue from: four times the bytes of its model."""
    for state in folder.glob("**/state.safetensors"):  # First: a state without its best weights is an error.
        state.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def with_rate(training: TrainingConfig, rate: float) -> TrainingConfig:
    """Return the training with ``rate`` in its first phase; those of the other phases keep their ratio to it."""
    factor = rate / training.phases[0].learning_rate
    rates = [rate, *(factor * phase.learning_rate for phase in training.phases[1:])]
    phases = [
        phase.model_copy(update={"learning_rate": scaled}) for phase, scaled in zip(training.phases, rates, strict=True)
    ]
    return training.model_copy(update={"phases": phases})


def train_from(
    state: Path,
    task: Task[Batch],
    training: TrainingConfig,
    *,
    card: Mapping[str, Any],
    device: torch.device,
    dtype: torch.dtype,
    reporter: Reporter,
    rates: Rates | None = None,
) -> Trained | None:
    """Train, or continue from the folder ``state``; the arguments are those of :func:`train_into` and :class:`Trainer`.

    None in all processes of a group but the first.
    """
    ingredients = [card["settings"], card["inputs"], card["code"], dtype_name(dtype), distributed.processes()]
    trainer = Trainer(
        task,
        training,
        device=device,
        dtype=dtype,
        folder=state,
        identity=sha256_bytes(canonical_json(ingredients).encode()),
        reporter=reporter,
        rates=rates,
    )
    end = trainer.run()
    if not distributed.is_first():
        return None
    best = read_tensors(trainer.best_file)
    if best is None:
        remedy = f"delete {CHECKPOINT}/ and train again"
        raise UserError("the best weights are gone", where=trainer.best_file, remedy=remedy)
    return Trained(end, best[0], trainer.gpu_file.read_text(encoding="utf-8"))
