"""The learning rate over a phase of training."""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Phase:
    """A stretch of training: how long, and how fast."""

    epochs: int
    learning_rate: float
    schedule: Literal["constant", "cosine", "linear", "step"] = "constant"
    final_fraction: float = 0.0
    warmup_steps: int = 0
    step_epochs: int = 5
    gamma: float = 0.5
    """``step`` alone: every ``step_epochs`` epochs the learning rate is multiplied by ``gamma``."""

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of step ``step`` of the phase's ``steps``, counted from 0.

        A linear warm-up, then from ``learning_rate`` to ``final_fraction`` of it along the schedule; ``step`` goes
        down by whole epochs of the phase (PyTorch's StepLR) and has no end of its own.
        """
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        if self.schedule == "constant":
            return self.learning_rate
        if self.schedule == "step":
            epoch = step * self.epochs // steps
            return float(self.learning_rate * self.gamma ** (epoch // self.step_epochs))
        done = (step - self.warmup_steps) / max(1, steps - self.warmup_steps - 1)
        left = 0.5 * (1 + math.cos(math.pi * done)) if self.schedule == "cosine" else 1 - done
        return self.learning_rate * (self.final_fraction + (1 - self.final_fraction) * left)
