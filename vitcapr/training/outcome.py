"""A training, or one for each learning rate of a sweep, and its files: weights, card, history, GPU use."""

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import torch
from torch import Tensor, nn

from vitcapr.config.parts import Part
from vitcapr.config.training import TrainingConfig
from vitcapr.encoders.devices import DTYPES, dtype_name, resolve_dtype
from vitcapr.errors import UserError
from vitcapr.files import canonical_json, parse_json, sha256_bytes, sha256_file, write_text
from vitcapr.formats.kinds import CHECKPOINT
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import WEIGHTS, write_model
from vitcapr.formats.training_files import SWEEP, History, gpu_csv, write_history, write_sweep
from vitcapr.loader import extension_parts
from vitcapr.progress import Reporter
from vitcapr.training import distributed
from vitcapr.training.loop import Diverged, Position, Task, Trainer, rank
from vitcapr.training.saved_state import read_tensors

Batch = TypeVar("Batch")
Rates = Iterable[tuple[list[nn.Parameter], float]]

_INGREDIENTS = "ingredients.json"
"""Facts that identify an unfinished training, beside its state."""


class Trained(NamedTuple):
    """A training at its end, with the weights of the best epoch and the text of gpu.csv."""

    end: Position
    weights: dict[str, Tensor]
    gpu_use: str


def digests(data: Manifest, **files: Path | None) -> dict[str, str | None]:
    """Return the ``inputs`` of a card: the sha256 of each file or of the weights in a folder, and of all splits."""
    paths = {name: path / WEIGHTS if path is not None and path.is_dir() else path for name, path in files.items()}
    of_files = {name: None if path is None else sha256_file(path) for name, path in paths.items()}
    return {**of_files, "images": sha256_bytes("\n".join(data.image_table.column("split")).encode())}


def check_scalar(loss: Tensor, objective: Part) -> Tensor:
    """Return the loss.

    Raises:
        UserError: the loss has a shape.
    """
    if loss.ndim:
        what = f"the loss '{objective.kind}' has the shape {tuple(loss.shape)}; it must be a scalar"
        raise UserError(what, remedy="return a mean")
    return loss


@dataclass(frozen=True)
class TrainingJob:
    """A training as a stage starts it: its folder, what it is made from, and where it runs.

    Attributes:
        folder: receives the files of the model. Unfinished trainings lie in its folder ``checkpoint``, which the caller
            removes when nothing can be lost any more.
        card: the model and everything that it is made from. An unfinished training is continued only if its card was
            the same. The outcome is added at the end.
        seed: of the initial weights and of the order of the batches.
    """

    folder: Path
    card: Mapping[str, Any]
    seed: int
    device: torch.device
    reporter: Reporter

    def describe(self, **facts: Any) -> Self:
        """Add facts to the card."""
        return replace(self, card={**self.card, **facts})

    def dtype(self, precision: str) -> torch.dtype:
        """Decide the arithmetic. An unfinished training with ``auto`` keeps its own on another machine."""
        here = resolve_dtype(precision, self.device)
        dtypes = [here, *DTYPES.values()] if precision == "auto" else [here]
        began = next((dtype for dtype in dtypes if self.state_folder(dtype).is_dir()), here)
        if began != here:
            was, now = dtype_name(began), dtype_name(here)
            self.reporter.line(f"the training began in {was} and continues so; here, auto is {now}")
        return began

    def _ingredients(self, dtype: torch.dtype) -> dict[str, Any]:
        """Return everything that the training depends on: its card before it begins, and its arithmetic."""
        return {**self.card, "precision": dtype_name(dtype), "processes": distributed.processes()}

    def state_folder(self, dtype: torch.dtype) -> Path:
        """Return the folder of the unfinished training. Its ingredients name it, so that no other training uses it."""
        name = sha256_bytes(canonical_json(self._ingredients(dtype)).encode())[:16]
        return self.folder / CHECKPOINT / name

    def _begin(self, dtype: torch.dtype) -> None:
        """Write the ingredients into the folder of the state, and say how other unfinished trainings differ."""
        folder, text = self.state_folder(dtype), canonical_json(self._ingredients(dtype))
        for path in sorted(folder.parent.glob(f"*/{_INGREDIENTS}")):
            own, other = parse_json(text), parse_json(path.read_text(encoding="utf-8"))
            if names := [name for name in own if own[name] != other.get(name)]:
                told = ("precision", "processes")
                words = ", ".join(f"{name} {other.get(name)}" if name in told else f"other {name}" for name in names)
                self.reporter.line(f"an unfinished training with {words} is kept until this one ends ({path.parent})")
        write_text(folder / _INGREDIENTS, text)

    def train(
        self,
        make_task: Callable[[], Task[Batch]],
        training: TrainingConfig,
        dtype: torch.dtype,
        *,
        sweep: Sequence[float] | None = None,
        rates_of: Callable[[nn.Module], Rates] | None = None,
        rows: Callable[[History], History] = lambda history: history,
    ) -> None:
        """Train, or continue, and write ``best.safetensors``, ``card.json``, ``history.csv`` and ``gpu.csv``.

        Without phases the model is left as it is.

        Args:
            make_task: a task with an untrained model, the same every time.
            dtype: the arithmetic, from :meth:`dtype`.
            sweep: learning rates of the first phase. One training for each; the best one on the validation split is
                kept, and ``sweep.csv`` has the best epoch of each, or none where training diverged. Empty: the rate of
                the training; None: no ``sweep.csv``.
            rates_of: from an untrained model to the ``rates`` of :class:`Trainer`.
            rows: from the history to the rows of ``history.csv``.

        Raises:
            Preempted: a signal came; the state is saved, and the same call continues it. Trainings that have ended are
                not repeated.
            UserError: the loss is not a number at any rate, or the best weights are gone.
        """
        rates = sweep or [phase.learning_rate for phase in training.phases[:1]]
        begun = self.state_folder(dtype)
        if rates and distributed.is_first():
            self._begin(dtype)
        table: list[dict[str, Any]] = []
        best: Trained | None = None
        diverged, chosen, by = 0, -1, training.select_by
        if not rates:  # No score, for nothing is chosen.
            weights = {name: tensor.clone() for name, tensor in make_task().model.state_dict().items()}
            best = Trained(Position(), weights, gpu_csv("nothing was trained"))
        for rate in rates:
            task, state = make_task(), begun / f"{rate!r}" if len(rates) > 1 else begun
            if len(rates) > 1:
                self.reporter.line(f"learning rate {rate:g}")
            groups = None if rates_of is None else rates_of(task.model)
            try:
                trained = self._train_one(state, task, with_rate(training, rate), dtype, groups)
            except Diverged as error:
                diverged += 1
                if diverged == len(rates):
                    raise
                self.reporter.line(f"learning rate {rate:g}: {error.what}")
                table.append({"learning_rate": rate})
                continue
            if trained is None:
                continue
            end = trained.end
            row = end.history[end.best_epoch - 1]
            table.append({**row, "learning_rate": rate, "best_epoch": end.best_epoch})
            if best is None or rank(row, by) > rank(table[chosen], by):
                best, chosen = trained, len(table) - 1
        if best is None:
            return
        if sweep is not None:
            listed = [{**row, "chosen": int(number == chosen)} for number, row in enumerate(table)]
            write_sweep(self.folder / SWEEP, listed)
        self._write(best, f"validation_{by}", dtype, rows)

    def _train_one(
        self, state: Path, task: Task[Batch], training: TrainingConfig, dtype: torch.dtype, rates: Rates | None
    ) -> Trained | None:
        """Train with one learning rate, or continue from the folder ``state``; None in all processes but the first."""
        how: dict[str, Any] = {"device": self.device, "dtype": dtype, "reporter": self.reporter, "rates": rates}
        trainer = Trainer(task, training, folder=state, **how)
        end = trainer.run()
        if not distributed.is_first():
            return None
        best = read_tensors(trainer.best_file)
        if best is None:
            remedy = f"delete {CHECKPOINT}/ and train again"
            raise UserError("the best weights are gone", where=trainer.best_file, remedy=remedy)
        return Trained(end, best[0], trainer.gpu_file.read_text(encoding="utf-8"))

    def _write(self, best: Trained, column: str, dtype: torch.dtype, rows: Callable[[History], History]) -> None:
        """Write the files of the model; ``column`` of the history chose the epoch."""
        end = best.end
        write_history(self.folder / "history.csv", rows(end.history))
        write_text(self.folder / "gpu.csv", best.gpu_use)
        outcome = {
            "best_epoch": end.best_epoch,
            "best_score": {} if end.best_score is None else {column: end.best_score},
            "precision": dtype_name(dtype),
            "versions": {"python": platform.python_version(), "torch": version("torch")},
        }
        own = extension_parts(self.card.get("settings", {}))
        write_model(self.folder, best.weights, {**self.card, **outcome, **({"extensions": own} if own else {})})
        score = "nothing was trained" if end.best_score is None else f"{column} {end.best_score:.4f}"
        self.reporter.line(f"best epoch {end.best_epoch}: {score}")


def with_rate(training: TrainingConfig, rate: float) -> TrainingConfig:
    """Return the training with ``rate`` in its first phase; those of the other phases keep their ratio to it."""
    factor = rate / training.phases[0].learning_rate
    rates = [rate, *(factor * phase.learning_rate for phase in training.phases[1:])]
    phases = [
        phase.model_copy(update={"learning_rate": scaled}) for phase, scaled in zip(training.phases, rates, strict=True)
    ]
    return training.model_copy(update={"phases": phases})
