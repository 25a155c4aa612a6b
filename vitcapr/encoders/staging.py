"""Copies between the host and a GPU for which the thread that launches the work does not wait.

Pinned memory, a stream for each direction, and events. On a CPU there is nothing to copy or to wait for.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor


def host_buffer(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Uninitialised host memory, pinned where a GPU copies it. torch uses it again only after the copies from it."""
    return torch.empty(tuple(shape), dtype=dtype, pin_memory=device.type == "cuda")


def for_device(values: np.ndarray, device: torch.device | None) -> Tensor:
    """Return the values in host memory, pinned where a GPU copies it."""
    tensor = torch.from_numpy(values)
    return tensor.pin_memory() if device is not None and device.type == "cuda" else tensor


def to_device(host: Tensor, device: torch.device) -> Tensor:
    """``host`` on ``device``. The work that this thread launches next waits for the copy; the thread does not."""
    if device.type != "cuda" or host.is_cuda:
        return host.to(device)
    stream, current = _streams(device)[0], torch.cuda.current_stream(device)
    with torch.cuda.stream(stream):
        placed = host.contiguous().pin_memory().to(device, non_blocking=True)
    current.wait_stream(stream)
    placed.record_stream(current)
    return placed


def to_host(tensor: Tensor, host: Tensor) -> None:
    """Copy ``tensor`` to ``host``, whose content is valid after the wait that :func:`copies_to_host` returns."""
    if not tensor.is_cuda:
        host.copy_(tensor)
        return
    stream = _streams(tensor.device)[1]
    stream.wait_stream(torch.cuda.current_stream(tensor.device))
    with torch.cuda.stream(stream):
        host.copy_(tensor, non_blocking=True)
    tensor.record_stream(stream)


def copies_to_host(device: torch.device) -> Callable[[], None]:
    """Return a function that any thread may call, and that waits for all copies by :func:`to_host` before this call."""
    if device.type != "cuda":
        return lambda: None
    event = torch.cuda.Event(blocking=True)
    event.record(_streams(device)[1])
    return event.synchronize


def kept_rows(kept: Tensor, count: int) -> Tensor:
    """Return the numbers of the true rows of ``kept: (B,)``, ``count`` in all, without asking the device again."""
    return kept.sort(descending=True, stable=True).indices[:count]


def _streams(device: torch.device) -> tuple[torch.cuda.Stream, torch.cuda.Stream]:
    """Return the streams for copies to a GPU, and from it."""
    return _copy_streams(torch.cuda.current_device() if device.index is None else device.index)


@cache
def _copy_streams(number: int) -> tuple[torch.cuda.Stream, torch.cuda.Stream]:
    return torch.cuda.Stream(number), torch.cuda.Stream(number)
