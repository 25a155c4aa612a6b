"""A trained model on disk: ``best.safetensors`` and ``card.json``.

Reading a card does not import torch.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, sha256_file, write_json
from vitcapr.formats.records import read_format

Model = TypeVar("Model")
Weights = dict[str, Any]
"""Tensors by their names."""

WEIGHTS, CARD = "best.safetensors", "card.json"
FORMAT = "vitcapr-model-2"
DIGEST = "weights_sha256"
"""In the card: the digest of the weights that it was written with."""
_REMEDY = "train the model again"


def write_card(folder: Path, card: dict[str, Any]) -> None:
    write_json(folder / CARD, {"format": FORMAT, **card})


def read_card(path: Path) -> dict[str, Any]:
    """Return the content of the ``card.json`` at ``path``."""
    return read_format(path, FORMAT, "the card of a trained model", "train the model")


def layer_of(card: Mapping[str, Any], kind: Literal["captioner", "retriever"]) -> int | None:
    """Return the hidden layer of its backbone that a model reads, counted from 1; None: the output."""
    layer: int | None = card.get("settings", {}).get(kind, {}).get("layer")
    return layer


def write_model(folder: Path, weights: Weights, card: dict[str, Any]) -> None:
    """Write the weights, then the card: a folder with a card is whole."""
    from safetensors.torch import save_file

    with atomic_path(folder / WEIGHTS) as temporary:
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, temporary)
    write_card(folder, {**card, DIGEST: sha256_file(folder / WEIGHTS)})


def read_model(folder: Path) -> tuple[Weights, dict[str, Any]]:
    """Return the weights, on the CPU, and the card."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    card = read_card(folder / CARD)
    weights = folder / WEIGHTS
    try:
        if sha256_file(weights) != card.get(DIGEST):
            raise UserError(f"damaged weights: {CARD} was written with others", where=weights, remedy=_REMEDY)
        loaded = load_file(weights)
    except (OSError, SafetensorError) as error:
        raise UserError(f"damaged weights: {error}", where=weights, remedy=_REMEDY) from error
    if not all(tensor.isfinite().all() for tensor in loaded.values()):
        raise UserError("damaged weights: not all of them are finite", where=weights, remedy=_REMEDY)
    return loaded, card


def rebuild(folder: Path, build: Callable[[dict[str, Any]], Model], card: Mapping[str, Any], weights: Any) -> Model:
    """Return the model that the card describes, with its weights.

    Raises:
        UserError: the weights are of another model.
    """
    try:
        architecture = card["architecture"]
        if architecture.get("members", 1) + architecture.get("layers", 0) > len(weights):
            raise ValueError(f"{len(weights)} weights are too few")  # Else it is built for hours.
        model = build(architecture)
        model.load_state_dict(weights)  # type: ignore[attr-defined]
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        what = f"the card describes no model of these weights: {type(error).__name__} {error}"
        raise UserError(what[:300], where=folder, remedy=_REMEDY) from error
    return model
