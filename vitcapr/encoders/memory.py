"""The memory that a model takes."""

import resource
import sys

import torch


def parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def memory_line(model: torch.nn.Module, device: torch.device) -> str:
    """A line with the peak memory of this process and the size of the weights."""
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    unit = 1 if sys.platform == "darwin" else 1024
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    line = f"peak memory {resident / 1e9:.2f} GB"
    if device.type == "cuda":
        line += f", {torch.cuda.max_memory_allocated(device) / 1e9:.2f} GB on the GPU"
    return f"{line}; weights {weights / 1e9:.2f} GB ({parameters(model) / 1e6:.1f} M)"
