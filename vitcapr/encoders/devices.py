"""The device and the arithmetic, the memory that a model takes, and copies between the host and a GPU.

The thread that launches the work of a GPU waits for no copy: pinned memory, a stream for each direction, and events. On
a CPU there is nothing to copy or to wait for.
"""

import resource
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vitcapr.errors import UserError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_BF16_FLAGS = {"amx_bf16", "avx512_bf16"}


def resolve_device(name: str) -> torch.device:
    """Return the device; ``auto`` is the GPU if there is one.

    Raises:
        UserError: the name is ``cuda``, and there is no GPU; or it is another.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise UserError(f"unknown device '{name}'", remedy="one of auto, cpu, cuda")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device 'cuda' is asked for, but PyTorch sees no GPU here", remedy="set device to auto or cpu")
    return torch.device(name)


@cache
def cpu_has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Return whether the CPU has bfloat16 matrix instructions (AMX or AVX512-BF16).

    Emulated bfloat16 is slower than float32.
    """
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return torch.backends.mkldnn.is_available() and not _BF16_FLAGS.isdisjoint(flags)


def resolve_dtype(name: str, device: torch.device) -> torch.dtype:
    """Return the dtype of a name; ``auto`` is bfloat16 if the hardware supports it, else float32.

    Raises:
        UserError: no such dtype.
    """
    if name == "auto":
        supported = torch.cuda.is_bf16_supported() if device.type == "cuda" else cpu_has_bfloat16()
        return torch.bfloat16 if supported else torch.float32
    if name not in DTYPES:
        raise UserError(f"unknown dtype '{name}'", remedy=f"one of auto, {', '.join(DTYPES)}")
    return DTYPES[name]


def dtype_name(dtype: torch.dtype) -> str:
    """``torch.bfloat16`` -> ``bfloat16``."""
    return str(dtype).removeprefix("torch.")


def autocast(device: torch.device, dtype: torch.dtype) -> torch.autocast:
    """Torch's autocast to ``dtype``; none for float32."""
    return torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32)


def memory_line(model: torch.nn.Module, device: torch.device) -> str:
    """Return a line with the peak memory of this process and the size of the weights."""
    numbers = sum(parameter.numel() for parameter in model.parameters())
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    unit = 1 if sys.platform == "darwin" else 1024
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    line = f"peak memory {resident / 1e9:.2f} GB"
    if device.type == "cuda":
        line += f", {torch.cuda.max_memory_allocated(device) / 1e9:.2f} GB on the GPU"
    return f"{line}; weights {weights / 1e9:.2f} GB ({numbers / 1e6:.1f} M)"


def host_buffer(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return uninitialised host memory, pinned for a GPU. torch reuses it only after the copies from it have ended."""
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
