"""The checkpoint from which a training continues bit for bit: one safetensors file, replaced atomically."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vitcapr.files import atomic_path


def write_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """``facts`` are JSON values kept in the file's header, so that tensors and facts are never of two moments."""
    with atomic_path(path) as temporary:
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(plain, temporary, metadata={"facts": json.dumps(facts)})


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The content that :func:`write_tensors` wrote; None if there is no readable file."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})["facts"])
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except (FileNotFoundError, SafetensorError, KeyError, json.JSONDecodeError):
        return None


def random_tensors() -> dict[str, Tensor]:
    """The state of torch's generators on the CPU and, where there is one, on the GPU."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random(tensors: dict[str, Tensor]) -> None:
    torch.set_rng_state(tensors["cpu"])
    if "cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["cuda"])


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that :func:`with_prefix` named, under their own names."""
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
