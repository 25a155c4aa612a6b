"""A trained model on disk: ``best.safetensors`` and the card that says what it is and what made it."""

from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, read_json, write_json

WEIGHTS, CARD = "best.safetensors", "card.json"
FORMAT = "vitcapr-model-1"


def write_model(folder: Path, weights: dict[str, Tensor], card: dict[str, Any]) -> None:
    """Write the weights, then the card: a folder with a card is whole."""
    with atomic_path(folder / WEIGHTS) as temporary:
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, temporary)
    write_json(folder / CARD, {"format": FORMAT, **card})


def read_model(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights, on the CPU, and the card.

    Raises:
        UserError: the folder holds no trained model, or a damaged one.
    """
    card = read_json(folder / CARD)
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise UserError(f"not a trained model of format {FORMAT}", where=folder, remedy="train it again")
    try:
        return load_file(folder / WEIGHTS), card
    except (FileNotFoundError, SafetensorError) as error:
        raise UserError(f"damaged weights: {error}", where=folder / WEIGHTS, remedy="train the model again") from error
