"""Runs a training and writes its files: weights, card, history and GPU use."""

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from vitcapr.encoders.precision import dtype_name
from vitcapr.errors import UserError
from vitcapr.files import canonical_json, sha256_bytes, write_text
from vitcapr.formats.model import write_model
from vitcapr.formats.training import History, write_history
from vitcapr.progress import Reporter
from vitcapr.training import distributed
from vitcapr.training.checkpoints import below, read_tensors
from vitcapr.training.loop import Position, Recipe, Task, Trainer

Batch = TypeVar("Batch")

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


def train_into(
    folder: Path,
    task: Task[Batch],
    recipe: Recipe,
    *,
    card: Mapping[str, Any],
    device: torch.device,
    dtype: torch.dtype,
    reporter: Reporter,
    rows: Callable[[History], History] = lambda history: history,
) -> None:
    """Train, or continue, and write ``best.safetensors``, ``card.json``, ``history.csv`` and ``gpu.csv``.

    Args:
        card: what the model is and what it is made from; ``settings``, ``inputs`` and ``code`` say which unfinished
            training in ``folder/checkpoint`` may be continued. The outcome is added to it.
        rows: those of ``history.csv``.

    Raises:
        Preempted: a signal came; the state is saved and the same call continues it.
        UserError: the loss is no longer a number, or the best weights are gone.
    """
    trained = train_from(folder / CHECKPOINT, task, recipe, card=card, device=device, dtype=dtype, reporter=reporter)
    if trained is not None:
        leave(folder, trained, recipe.select_by, card=card, dtype=dtype, reporter=reporter, rows=rows)


def train_from(
    state: Path,
    task: Task[Batch],
    recipe: Recipe,
    *,
    card: Mapping[str, Any],
    device: torch.device,
    dtype: torch.dtype,
    reporter: Reporter,
    rates: Iterable[tuple[list[nn.Parameter], float]] | None = None,
) -> Trained | None:
    """Train, or continue from the folder ``state``; the arguments and errors are those of :func:`train_into`, and the
    ``rates`` those of :class:`Trainer`.

    None in all processes of a group but the first.
    """
    ingredients = [card["settings"], card["inputs"], card["code"], dtype_name(dtype), distributed.processes()]
    trainer = Trainer(
        task,
        recipe,
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


def leave(
    folder: Path,
    trained: Trained,
    select_by: str,
    *,
    card: Mapping[str, Any],
    dtype: torch.dtype,
    reporter: Reporter,
    part: str = "",
    rows: Callable[[History], History] = lambda history: history,
) -> None:
    """Write the files of a training; the arguments are those of :func:`train_into`.

    Args:
        part: the name of the part of the task's model that is kept; all of it by default.
    """
    end = trained.end
    write_history(folder / "history.csv", rows(end.history))
    write_text(folder / "gpu.csv", trained.gpu_use)
    outcome = {
        "best_epoch": end.best_epoch,
        "best_score": {select_by: end.best_score},
        "precision": dtype_name(dtype),
        "versions": {"python": platform.python_version(), "torch": version("torch")},
    }
    write_model(folder, below(part, trained.weights) if part else trained.weights, {**card, **outcome})
    reporter.line(f"best epoch {end.best_epoch}: {select_by} {end.best_score:.4f}")
