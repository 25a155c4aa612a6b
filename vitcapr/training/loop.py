"""Training loop of every model: phases, mixed precision, validation, and stopping at any step."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from vitcapr.config.training import TrainingConfig
from vitcapr.encoders.devices import autocast
from vitcapr.errors import Preempted, UserError
from vitcapr.progress import Reporter, Tracker
from vitcapr.training import distributed, saved_state
from vitcapr.training.distributed import StopRequest, stop_on_signal
from vitcapr.training.gpu_use import sample_gpu_use
from vitcapr.training.optimizer import WeightAverage, build_optimizer, optimizer_tensors, rate_at, restore_optimizer

Batch = TypeVar("Batch")

_SAVE_STEPS = 200
"""Steps of an epoch after which the state is saved."""
_SECONDS = 10.0
"""Between two epochs, the state is saved if the saved one is older than this."""
_STEPS_UNREAD = {"cpu": 1, "cuda": 20}
"""Steps after which their losses are read: a GPU that is asked for a number has nothing to do until the answer."""


class Task(Protocol[Batch]):
    """The task of a training: its batches, its loss and its validation.

    Among several processes (:mod:`vitcapr.training.distributed`) the batches are this process's shares of the batches,
    and the loss is such that its mean over the items of all processes is the loss of the whole batch.
    """

    @property
    def model(self) -> nn.Module: ...

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[Batch]:
        """Return the batches of an epoch from batch ``start`` on, the same for the same arguments.

        ``epoch`` counts from 1 over all phases.
        """
        ...

    def steps(self, phase: int) -> int:
        """Return the number of batches in an epoch of a phase."""
        ...

    def loss(self, batch: Batch) -> tuple[Tensor, int]:
        """Return the mean loss over the items of a batch, and their number."""
        ...

    def validate(self) -> dict[str, float]:
        """Return the scores on the validation split, with ``validation_loss``; the model is in evaluation mode."""
        ...


class Diverged(UserError):
    """The loss, or the score that chooses the epoch, is no longer a number."""


@dataclass
class Position:
    """The position of the next step, and the statistics up to this step."""

    phase: int = 0
    epoch: int = 0
    """Epoch within the phase."""
    step: int = 0
    """Step within the epoch."""
    loss_sum: float = 0.0
    loss_items: int = 0
    best_epoch: int = 0
    """Number of the best epoch over all phases, counted from 1; 0 before the first validation."""
    best_score: float | None = None
    history: list[dict[str, float]] = field(default_factory=list)


class Trainer(Generic[Batch]):
    """Trains a task's model, and continues where an earlier run of the same command stopped.

    Args:
        folder: where the state lives; it survives a stop and is never a declared output. Everything that the training
            depends on decides its name.
        rates: the weights to train, each group with the factor on its learning rate; None trains all of them alike.

    Attributes:
        best_file: the best weights so far, once an epoch has been validated.
        gpu_file: how busy the GPU was, of this run and those that it continues.
    """

    def __init__(
        self,
        task: Task[Batch],
        training: TrainingConfig,
        *,
        device: torch.device,
        dtype: torch.dtype,
        folder: Path,
        reporter: Reporter,
        rates: Iterable[tuple[list[nn.Parameter], float]] | None = None,
    ) -> None:
        self.task, self.training, self.device, self.dtype = task, training, device, dtype
        self.folder, self.reporter = folder, reporter
        self.best_file, self.gpu_file = folder / "best.safetensors", folder / "gpu.csv"
        self.model = task.model.to(device)
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        groups = [(trained, 1.0)] if rates is None else rates
        self.optimizer = build_optimizer(training.optimizer, groups, training.weight_decay)
        self.scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
        self.average = WeightAverage(self.model, training.ema_decay)
        self.position = Position()
        self._unread: list[tuple[Tensor, int]] = []
        self._saved = time.monotonic()

    def run(self) -> Position:
        """Train to the end.

        Raises:
            Preempted: a signal came; the state is saved and the same command continues it.
            UserError: the loss, or the score that chooses the best epoch, is no longer a number.
        """
        distributed.broadcast_parameters(self.model)
        self._resume()
        position, phases = self.position, self.training.phases
        plan = [phase.epochs * self.task.steps(number) for number, phase in enumerate(phases)]
        done = sum(plan[: position.phase])
        if position.phase < len(phases):
            done += position.epoch * self.task.steps(position.phase) + position.step
        sampling = sample_gpu_use(self.gpu_file, self.device, continued=done > 0)
        with (
            stop_on_signal(patient=distributed.processes() > 1) as stop,
            sampling if distributed.is_first() else nullcontext(),
            self.reporter.track("training", sum(plan), "batches", done) as tracker,
        ):
            self._epochs(tracker, stop)
            self._save()
        return self.position

    def _epochs(self, tracker: Tracker, stop: StopRequest) -> None:
        for phase in range(self.position.phase, len(self.training.phases)):
            for epoch in range(self.position.epoch, self.training.phases[phase].epochs):
                if distributed.any_of(time.monotonic() - self._saved > _SECONDS):
                    self._save()
                self._epoch(phase, epoch, tracker, stop)
            self.position.phase, self.position.epoch = phase + 1, 0

    def _epoch(self, phase: int, epoch: int, tracker: Tracker, stop: StopRequest) -> None:
        position, settings = self.position, self.training.phases[phase]
        steps = self.task.steps(phase)
        number, note = len(position.history) + 1, ""
        self.model.train()
        for batch in self.task.batches(phase, number, position.step):
            self._step(batch, rate_at(settings, epoch * steps + position.step, settings.epochs * steps))
            position.step += 1
            saves = position.step % _SAVE_STEPS == 0
            if saves or position.step == steps or len(self._unread) == _STEPS_UNREAD[self.device.type]:
                self._read_losses()
                note = f"epoch {number}, loss {position.loss_sum / position.loss_items:.3f}"
            tracker.advance(note=note)
            if not self._unread and distributed.any_of(bool(stop)):
                self._save()
                signal = stop.name or "a signal to another process"
                raise Preempted(f"training saved at epoch {number}, batch {position.step}, after {signal}")
            if saves:
                self._save()
        self._validate(number, phase, rate_at(settings, (epoch + 1) * steps - 1, settings.epochs * steps))
        position.epoch, position.step, position.loss_sum, position.loss_items = epoch + 1, 0, 0.0, 0

    def _step(self, batch: Batch, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        with autocast(self.device, self.dtype):
            loss, items = self.task.loss(batch)
        self._unread.append((loss.detach(), items))
        self.optimizer.zero_grad()
        self.scaler.scale(loss * distributed.share_of(items, self.device)).backward()
        distributed.add_up_gradients(self.model)
        if self.training.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.average.update()

    def _read_losses(self) -> None:
        """Add the losses of the last steps to the statistics.

        Raises:
            Diverged: one is not a number.
        """
        losses, items = zip(*self._unread, strict=True)
        sums = [loss * count for loss, count in zip(torch.stack(losses).tolist(), items, strict=True)]
        totals = distributed.all_reduce(*sums, *items)
        first = self.position.step - len(items) + 1
        for step, (loss, count) in enumerate(zip(totals[: len(items)], totals[len(items) :], strict=True), first):
            if math.isnan(loss):
                raise Diverged(
                    f"the loss is not a number at epoch {len(self.position.history) + 1}, batch {step}",
                    remedy="lower the learning rate, or train in float32",
                )
            self.position.loss_sum += loss
            self.position.loss_items += int(count)
        self._unread.clear()

    def _validate(self, number: int, phase: int, rate: float) -> None:
        position = self.position
        self.model.eval()
        with self.average.applied(), torch.inference_mode(), autocast(self.device, self.dtype):
            scores = distributed.broadcast(self.task.validate())
        by = self.training.select_by
        score = scores[f"validation_{by}"]
        if math.isnan(score):
            raise Diverged(
                f"validation_{by} is not a number at epoch {number}",
                remedy="lower the learning rate, or train in float32",
            )
        row = {"epoch": number, "phase": phase + 1, "train_loss": position.loss_sum / position.loss_items}
        position.history.append({**row, **scores, "learning_rate": rate})
        best = position.history[position.best_epoch - 1]
        if not position.best_epoch or rank(scores, by) > rank(best, by):
            position.best_score, position.best_epoch = score, number
            if distributed.is_first():
                saved_state.write_tensors(self.best_file, self.average.state(), {"epoch": number})
        text = ", ".join(f"{name} {value:.4g}" for name, value in position.history[-1].items() if name != "epoch")
        self.reporter.line(f"epoch {number}: {text}{', best so far' if position.best_epoch == number else ''}")

    def _save(self) -> None:
        """Save the state from rank 0 while the others wait: torchrun ends all processes when one ends with a code."""
        random = distributed.all_gather(saved_state.random_tensors())
        if distributed.is_first():
            self._write(random)
        distributed.all_reduce(0.0)  # Wait until every process is here.
        self._saved = time.monotonic()

    def _write(self, random: list[dict[str, Tensor]]) -> None:
        """random: the state of the generators of every process, by rank."""
        tensors = {
            **saved_state.with_prefix("model", self.model.state_dict()),
            **saved_state.with_prefix("average", self.average.weights),
            **saved_state.with_prefix("optimizer", optimizer_tensors(self.optimizer)),
        }
        for number, state in enumerate(random):
            tensors |= saved_state.with_prefix(f"random-{number}", state)
        facts: dict[str, Any] = {
            "position": asdict(self.position),
            "average_updates": self.average.updates,
            "scaler": self.scaler.state_dict(),
        }
        saved_state.write_tensors(self.folder / "state.safetensors", tensors, facts)

    def _resume(self) -> None:
        state = saved_state.read_tensors(self.folder / "state.safetensors")
        if state is None:
            return
        tensors, facts = state
        self.model.load_state_dict(saved_state.below("model", tensors))
        restore_optimizer(self.optimizer, saved_state.below("optimizer", tensors))
        saved_state.restore_random(saved_state.below(f"random-{distributed.rank()}", tensors))
        self.average.restore(saved_state.below("average", tensors), facts["average_updates"])
        self.scaler.load_state_dict(facts["scaler"])
        self.position = Position(**facts["position"])
        position = self.position
        self.reporter.line(f"continuing at epoch {len(position.history) + 1}, batch {position.step + 1}")


def rank(scores: Mapping[str, float], select_by: str) -> tuple[float, float]:
    """Sort key of an epoch: the score, then the negative loss, which breaks ties on small validation sets."""
    score, loss = scores[f"validation_{select_by}"], scores["validation_loss"]
    return (-score if select_by == "loss" else score), -loss
