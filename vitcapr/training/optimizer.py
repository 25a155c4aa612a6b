"""Adam, AdamW and SGD by torch's functions, their learning rate over a phase, and the average of the weights.

``torch.optim.Adam`` and the other classes compute the same. They import ``torch._dynamo``, which nothing here compiles
with and which takes as long as the rest of torch.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from vitcapr.config.training import PhaseConfig

Kind = Literal["adam", "adamw", "sgd"]


class Optimizer:
    """The weights and what is remembered of their gradients, with the defaults of torch's classes.

    Attributes:
        param_groups: as those of ``torch.optim.Optimizer``: the trainer sets ``lr`` before a step, and
            ``torch.amp.GradScaler`` reads ``params``.
    """

    def __init__(self, kind: Kind, groups: Iterable[tuple[list[nn.Parameter], float]], weight_decay: float) -> None:
        """groups: weights, each group with the factor on its learning rate."""
        self._kind, self._weight_decay = kind, weight_decay
        self.param_groups: list[dict[str, Any]] = [
            {"params": weights, "scale": scale, "lr": 0.0} for weights, scale in groups
        ]
        self._parameters: list[nn.Parameter] = [weight for group in self.param_groups for weight in group["params"]]
        self._state: dict[nn.Parameter, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            gradients = [weight.grad for weight in weights]
            common = {"lr": group["lr"], "weight_decay": self._weight_decay, "maximize": False, "fused": True}
            if self._kind == "sgd":
                none: list[Tensor | None] = [None] * len(weights)
                sgd(weights, gradients, none, momentum=0.0, dampening=0.0, nesterov=False, **common)
                continue
            states = [self._state.get(weight) or self._begin(weight) for weight in weights]
            adam(
                weights,
                gradients,
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                decoupled_weight_decay=self._kind == "adamw",
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                eps=1e-8,
                **common,
            )

    def _begin(self, weight: nn.Parameter) -> dict[str, Tensor]:
        zeros = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
        self._state[weight] = {"step": torch.zeros((), device=weight.device), **zeros}
        return self._state[weight]

    def tensors(self) -> dict[str, Tensor]:
        """What is remembered, by ``<parameter number>.<key>``."""
        return {
            f"{number}.{key}": value
            for number, weight in enumerate(self._parameters)
            for key, value in self._state.get(weight, {}).items()
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what :meth:`tensors` gave."""
        for name, tensor in tensors.items():
            number, _, key = name.partition(".")
            weight = self._parameters[int(number)]
            self._state.setdefault(weight, {})[key] = tensor.to(weight.device)


def rate_at(phase: PhaseConfig, step: int, steps: int) -> float:
    """The learning rate of step ``step`` of a phase's ``steps``, counted from 0.

    A linear warm-up, then from ``learning_rate`` to ``final_fraction`` of it along the schedule; ``step`` goes down by
    whole epochs of the phase (PyTorch's StepLR) and has no end of its own.
    """
    if step < phase.warmup_steps:
        return phase.learning_rate * (step + 1) / phase.warmup_steps
    if phase.schedule == "constant":
        return phase.learning_rate
    if phase.schedule == "step":
        epoch = step * phase.epochs // steps
        return float(phase.learning_rate * phase.gamma ** (epoch // phase.step_epochs))
    done = (step - phase.warmup_steps) / max(1, steps - phase.warmup_steps - 1)
    left = 0.5 * (1 + math.cos(math.pi * done)) if phase.schedule == "cosine" else 1 - done
    return phase.learning_rate * (phase.final_fraction + (1 - phase.final_fraction) * left)


class WeightAverage:
    """Exponential moving average with a warm-up: the decay is at most (1 + n) / (10 + n) after n updates.

    A decay of 0 makes the average the weights themselves.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._model, self._decay = model, decay
        self.updates = 0
        self._weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    @torch.no_grad()
    def update(self) -> None:
        if self._decay:
            decay = min(self._decay, (1 + self.updates) / (10 + self.updates))
            torch._foreach_lerp_(list(self._weights.values()), list(self._model.state_dict().values()), 1 - decay)
        self.updates += 1

    def state(self) -> dict[str, Tensor]:
        """The averaged weights by the model's own names."""
        return self._weights if self._decay else self._model.state_dict()

    @torch.no_grad()
    def restore(self, weights: dict[str, Tensor], updates: int) -> None:
        self.updates = updates
        for name, tensor in self._weights.items():
            tensor.copy_(weights[name])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the model has the averaged weights."""
        if not self._decay:
            yield
            return
        own = {name: tensor.clone() for name, tensor in self._model.state_dict().items()}
        self._model.load_state_dict(self._weights)
        try:
            yield
        finally:
            self._model.load_state_dict(own)
