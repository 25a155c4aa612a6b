"""Tasks trained in a folder, and stopped where a test says."""

import os
import signal
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import torch

from vitcapr.config.training import TrainingConfig
from vitcapr.progress import Reporter
from vitcapr.training.checkpoints import read_tensors
from vitcapr.training.loop import Position, Trainer


def trainer(task: Any, folder: Path, recipe: TrainingConfig, identity: str = "same") -> Trainer[Any]:
    return Trainer(
        task,
        recipe,
        device=torch.device("cpu"),
        dtype=torch.float32,
        folder=folder,
        identity=identity,
        reporter=Reporter(stream=StringIO()),
    )


def train_in(folder: Path, task: Any, recipe: TrainingConfig) -> tuple[Position, dict[str, torch.Tensor]]:
    """Where the training ended, and the state that it saved."""
    position = trainer(task, folder, recipe).run()
    state = read_tensors(folder / "state.safetensors")
    assert state is not None
    return position, state[0]


class StopsBefore:
    """Of a task that is asked to stop before a chosen batch."""

    stop_before: int | None = None
    seen = 0

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[Any]:
        for batch in super().batches(phase, epoch, start):  # type: ignore[misc]
            if self.seen == self.stop_before:
                os.kill(os.getpid(), signal.SIGTERM)
            self.seen += 1
            yield batch
