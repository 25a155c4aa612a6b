"""torch's optimisers and their state as tensors, their learning rate over a phase, and the average of the weights."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from vitcapr.config.training import DualEncoderPhaseConfig, PhaseConfig
from vitcapr.training.phases import warmup_steps


def build_optimizer(
    kind: str, groups: Iterable[tuple[list[nn.Parameter], float]], weight_decay: float
) -> torch.optim.Optimizer:
    """Return the optimizer of ``groups``.

    Each group has weights and ``scale``, the factor on its learning rate; the trainer sets ``lr``.
    """
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    parameters: list[dict[str, Any]] = [{"params": weights, "scale": scale} for weights, scale in groups]
    optimizer: torch.optim.Optimizer = kinds[kind](parameters, lr=0.0, weight_decay=weight_decay, fused=True)
    return optimizer


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the state of an optimizer as tensors, by ``<parameter number>.<key>``."""
    states = optimizer.state_dict()["state"].items()
    tensors = {f"{number}.{key}": value for number, state in states for key, value in state.items()}
    return {name: value for name, value in tensors.items() if value is not None}  # SGD's momentum may be None.


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Restore the state that :func:`optimizer_tensors` returned."""
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        number, _, key = name.partition(".")
        states.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})


def rate_at(phase: PhaseConfig, step: int, steps: int) -> float:
    """Return the learning rate of step ``step`` of a phase's ``steps``, counted from 0.

    A linear warm-up, then from ``learning_rate`` to ``final_fraction`` of it along the schedule; ``step`` goes down by
    whole epochs of the phase (PyTorch's StepLR) and has no end of its own.
    """
    warmup = warmup_steps(phase, steps)
    if step < warmup:
        return phase.learning_rate * (step + 1) / warmup
    if phase.schedule == "constant":
        return phase.learning_rate
    if isinstance(phase, DualEncoderPhaseConfig) and phase.schedule == "step":
        epoch = step * phase.epochs // steps
        return float(phase.learning_rate * phase.gamma ** (epoch // phase.step_epochs))
    done = (step - warmup) / max(1, steps - warmup - 1)
    left = 0.5 * (1 + math.cos(math.pi * done)) if phase.schedule == "cosine" else 1 - done
    return phase.learning_rate * (phase.final_fraction + (1 - phase.final_fraction) * left)


class WeightAverage:
    """Exponential moving average with a warm-up: the decay is at most (1 + n) / (10 + n) after n updates.

    A decay of 0 makes the average the weights themselves.

    Attributes:
        weights: the averaged weights by the model's own names; none without decay.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._model, self._decay = model, decay
        self.updates = 0
        self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()} if decay else {}

    @torch.no_grad()
    def update(self) -> None:
        if self._decay:
            decay = min(self._decay, (1 + self.updates) / (10 + self.updates))
            own = self._model.state_dict()
            real = [name for name, tensor in own.items() if tensor.is_floating_point()]
            torch._foreach_lerp_([self.weights[name] for name in real], [own[name] for name in real], 1 - decay)
            for name in own.keys() - set(real):  # A table of word ids has no mean.
                self.weights[name].copy_(own[name])
        self.updates += 1

    def state(self) -> dict[str, Tensor]:
        """Return the averaged weights by the model's own names."""
        return self.weights or self._model.state_dict()

    @torch.no_grad()
    def restore(self, weights: dict[str, Tensor], updates: int) -> None:
        self.updates = updates
        for name, tensor in self.weights.items():
            tensor.copy_(weights[name])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the model the averaged weights while the block runs."""
        if not self._decay:
            yield
            return
        own = {name: tensor.clone() for name, tensor in self._model.state_dict().items()}
        self._model.load_state_dict(self.weights)
        try:
            yield
        finally:
            self._model.load_state_dict(own)
