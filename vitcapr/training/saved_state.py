"""Initial weights: the checkpoint of an unfinished training, and word vectors.

A checkpoint is one safetensors file, replaced atomically; a training continues from it bit for bit.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from vitcapr.errors import UserError
from vitcapr.files import atomic_path
from vitcapr.formats.vocabulary import read_word_vectors


def write_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors, and ``facts``, JSON values, in the header of the same file, so that both are of one moment."""
    with atomic_path(path) as temporary:
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(plain, temporary, metadata={"facts": json.dumps(facts)})


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Return the content that :func:`write_tensors` wrote; None if there is no readable file."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})["facts"])
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except (FileNotFoundError, SafetensorError, KeyError, json.JSONDecodeError):
        return None


def random_tensors() -> dict[str, Tensor]:
    """Return the state of torch's generators on the CPU and, where there is one, on the GPU."""
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
    """Return the tensors that :func:`with_prefix` named, under their own names."""
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


def start_embedding(embedding: nn.Embedding, path: Path, key: str) -> None:
    """Give ``embedding`` the vectors of a ``vectors.npy``, a row a word.

    Args:
        key: the setting that decides the embedding's width, for the message.

    Raises:
        UserError: the file is missing or damaged, or its vectors are of another vocabulary or width.
    """
    vectors = read_word_vectors(path)
    weight = embedding.weight
    if vectors.shape != tuple(weight.shape):
        raise UserError(
            f"the word vectors are {vectors.shape[0]} x {vectors.shape[1]}, the embedding {weight.shape[0]} x "
            f"{weight.shape[1]}",
            where=path,
            remedy=f"set {key} to the dimension of the word vectors",
        )
    with torch.no_grad():
        weight.copy_(torch.from_numpy(vectors))
