"""A moving average of a model's weights, which usually validates better than the weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


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
