"""Runs a training, or one for each learning rate of a sweep, and writes its files: weights, card, history, GPU use."""

import math
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from vitcapr.config.parts import Part
from vitcapr.config.training import TrainingConfig
from vitcapr.encoders.precision import DTYPES, dtype_name, resolve_dtype
from vitcapr.errors import UserError
from vitcapr.files import canonical_json, parse_json, sha256_bytes, sha256_file, write_text
from vitcapr.formats.kinds import CHECKPOINT
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import WEIGHTS, write_model
from vitcapr.formats.training import SWEEP, History, gpu_csv, write_history, write_sweep
from vitcapr.progress import Reporter
from vitcapr.training import distributed
from vitcapr.training.checkpoints import read_tensors
from vitcapr.training.loop import Diverged, Position, Task, Trainer, rank

Batch = TypeVar("Batch")
Rates = Iterable[tuple[list[nn.Parameter], float]]

_INGREDIENTS = "ingredients.json"
"""Facts that identify an unfinished training, beside its state."""


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


def _ingredients(card: Mapping[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """Return everything that a training depends on: what its card says before it begins, and its arithmetic."""
    return {**card, "precision": dtype_name(dtype), "processes": distributed.processes()}


def _state_folder(folder: Path, card: Mapping[str, Any], dtype: torch.dtype) -> Path:
    """Return the folder of the state of a training. Its ingredients name it, so that no other training uses it."""
    name = sha256_bytes(canonical_json(_ingredients(card, dtype)).encode())[:16]
    return folder / CHECKPOINT / name


def training_dtype(
    precision: str, device: torch.device, folder: Path, card: Mapping[str, Any], reporter: Reporter
) -> torch.dtype:
    """Decide the arithmetic of a training. An unfinished training with ``auto`` keeps its own on another machine.

    Args:
        folder, card: as for :func:`train_into`.
    """
    here = resolve_dtype(precision, device)
    dtypes = [here, *DTYPES.values()] if precision == "auto" else [here]
    began = next((dtype for dtype in dtypes if _state_folder(folder, card, dtype).is_dir()), here)
    if began != here:
        reporter.line(f"the training began in {dtype_name(began)} and continues so; here, auto is {dtype_name(here)}")
    return began


def _begin(folder: Path, ingredients: Mapping[str, Any], reporter: Reporter) -> None:
    """Write the ingredients of a training into the folder of its state, and say how other unfinished ones differ."""
    text = canonical_json(ingredients)
    for path in sorted(folder.parent.glob(f"*/{_INGREDIENTS}")):
        own, other = parse_json(text), parse_json(path.read_text(encoding="utf-8"))
        if names := [name for name in own if own[name] != other.get(name)]:
            words = (
                f"{name} {other.get(name)}" if name in ("precision", "processes") else f"other {name}" for name in names
            )
            reporter.line(f"an unfinished training with {', '.join(words)} is kept until this one ends ({path.parent})")
    write_text(folder / _INGREDIENTS, text)


def check_scalar(loss: Tensor, objective: Part) -> Tensor:
    """Return the loss.

    Raises:
        UserError: the loss has a shape.
    """
    if loss.ndim:
        what = f"the loss '{objective.kind}' has the shape {tuple(loss.shape)}; it must be a scalar"
        raise UserError(what, remedy="return a mean")
    return loss


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
        card: what the model is and everything that it is made from: an unfinished training in ``folder/checkpoint``
            is continued only if its card was the same. The outcome is added to it. The caller removes that folder when
            nothing can be lost any more.
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
    rates = sweep or [phase.learning_rate for phase in training.phases[:1]]
    begun = _state_folder(folder, card, dtype)
    if rates and distributed.is_first():
        _begin(begun, _ingredients(card, dtype), reporter)
    table: list[dict[str, Any]] = []
    best: Trained | None = None
    diverged, chosen, best_rank = 0, -1, (-math.inf, -math.inf)
    if not rates:  # No score, for nothing is chosen.
        weights = {name: tensor.clone() for name, tensor in make_task().model.state_dict().items()}
        best = Trained(Position(), weights, gpu_csv("nothing was trained"))
    for rate in rates:
        task, state = make_task(), begun / f"{rate!r}" if len(rates) > 1 else begun
        if len(rates) > 1:
            reporter.line(f"learning rate {rate:g}")
        groups = None if rates_of is None else rates_of(task.model)
        try:
            trained = train_from(
                state, task, with_rate(training, rate), device=device, dtype=dtype, reporter=reporter, rates=groups
            )
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
    score = "nothing was trained" if end.best_score is None else f"{column} {end.best_score:.4f}"
    reporter.line(f"best epoch {end.best_epoch}: {score}")


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
    device: torch.device,
    dtype: torch.dtype,
    reporter: Reporter,
    rates: Rates | None = None,
) -> Trained | None:
    """Train, or continue from the folder ``state``; the arguments are those of :func:`train_into` and :class:`Trainer`.

    None in all processes of a group but the first.
    """
    trainer = Trainer(
        task,
        training,
        device=device,
        dtype=dtype,
        folder=state,
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
