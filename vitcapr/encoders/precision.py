"""The device and the arithmetic: what ``auto`` means on this machine, and the memory that a model takes."""

import resource
import sys
from functools import cache
from pathlib import Path

import torch

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
