"""Finds what would make the thread that launches work wait for a GPU, with tensors of a CPU in its place."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from vitcapr.encoders import devices
from vitcapr.training.loop import Trainer

_WAITS = {
    *("item", "tolist", "cpu", "__bool__", "__int__", "__float__", "__index__", "__contains__", "__array__"),
    *("nonzero", "argwhere", "masked_select", "bincount", "unique", "repeat_interleave", "equal", "allclose"),
}
"""Functions whose result, or its shape, is a number that only the device knows."""
_BY_INDEX = ("__getitem__", "__setitem__")


class OnDevice(Tensor):
    """Stands for a tensor on a GPU; what is computed from it is one too."""


def _is_on_device(value: Any) -> bool:
    return isinstance(value, OnDevice | nn.Parameter) or (isinstance(value, Tensor) and value.requires_grad)


class _Waits(TorchFunctionMode):
    """Counts the waits, if they are ``allowed``; else the first one is an error."""

    def __init__(self, allowed: bool) -> None:
        super().__init__()
        self.allowed, self.names = allowed, list[str]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        waits = name in _WAITS
        if name in _BY_INDEX:
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            waits = any(isinstance(each, Tensor) and each.dtype == torch.bool for each in index)
        unpinned = func in (torch.tensor, torch.as_tensor) and "device" in kwargs
        if unpinned or (waits and any(map(_is_on_device, tree_leaves((args, kwargs))))):
            self.names.append(name)
            assert self.allowed, f"{name} waits for the device"
        return func(*args, **kwargs)


@contextmanager
def no_waits(allowed: bool = False) -> Iterator[list[str]]:
    """Inside, this thread must not wait for a tensor that :func:`devices.to_device` gave, or for a weight.

    If it is ``allowed``, the list has what waited. On a GPU, ``torch.cuda.set_sync_debug_mode`` finds the same
    (``make test-gpu``).
    """
    real = devices.to_device
    users = [module for name, module in sys.modules.items() if name.startswith("vitcapr.")]
    with pytest.MonkeyPatch.context() as patched, _Waits(allowed) as found:
        for module in users:
            if getattr(module, "to_device", None) is real:
                patched.setattr(module, "to_device", lambda host, _: host.as_subclass(OnDevice))
        yield found.names


def watch_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From the second step on, trainings must not wait. The first one may: it reads what a state held.

    Returns a list with a number for each step that was watched.
    """
    step, watched = Trainer._step, []

    def watch(trainer: Trainer[Any], *arguments: Any) -> None:
        for module in trainer.model.modules():
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = buffer.as_subclass(OnDevice)
        if trainer.position.step + trainer.position.epoch == 0:
            step(trainer, *arguments)
            return
        with no_waits():
            step(trainer, *arguments)
        watched.append(trainer.position.step)

    monkeypatch.setattr(Trainer, "_step", watch)
    return watched
