"""A trained model on disk: ``best.safetensors`` and its card."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, sha256_file
from vitcapr.formats.model_card import CARD, WEIGHTS, read_card, write_card

Model = TypeVar("Model", bound=nn.Module)
DIGEST = "weights_sha256"
"""In the card: the digest of the weights that it was written with."""
_REMEDY = "train the model again"


def write_model(folder: Path, weights: dict[str, Tensor], card: dict[str, Any]) -> None:
    """Write the weights, then the card: a folder with a card is whole."""
    with atomic_path(folder / WEIGHTS) as temporary:
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, temporary)
    write_card(folder, {**card, DIGEST: sha256_file(folder / WEIGHTS)})


def read_model(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights, on the CPU, and the card.

    Raises:
        UserError: the folder holds no trained model, or a damaged one.
    """
    card = read_card(folder / CARD)
    weights = folder / WEIGHTS
    try:
        if sha256_file(weights) != card.get(DIGEST):
            raise UserError(f"damaged weights: {CARD} was written with others", where=weights, remedy=_REMEDY)
        loaded = load_file(weights)
    except (OSError, SafetensorError) as error:
        raise UserError(f"damaged weights: {error}", where=weights, remedy=_REMEDY) from error
    if not isinstance(card.get("architecture"), dict):
        raise UserError("the card has no architecture", where=folder / CARD, remedy=_REMEDY)
    return loaded, card


def rebuild(folder: Path, build: Callable[[dict[str, Any]], Model], card: Mapping[str, Any], weights: Any) -> Model:
    """The model that the card describes, with its weights.

    Raises:
        UserError: the card describes no model, or one of other weights.
    """
    try:
        model = build(card["architecture"])
        model.load_state_dict(weights)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        what = f"the card describes no model of these weights: {type(error).__name__} {error}"
        raise UserError(what[:300], where=folder, remedy=_REMEDY) from error
    return model
