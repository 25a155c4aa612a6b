"""``card.json`` of a trained model: what it is and what made it. Reading it loads no torch."""

from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import read_json, write_json

WEIGHTS, CARD = "best.safetensors", "card.json"
FORMAT = "vitcapr-model-1"


def write_card(folder: Path, card: dict[str, Any]) -> None:
    write_json(folder / CARD, {"format": FORMAT, **card})


def read_card(folder: Path) -> dict[str, Any]:
    """The card of the model in ``folder``.

    Raises:
        UserError: the folder holds no trained model, or a damaged one.
    """
    card = read_json(folder / CARD)
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise UserError(f"not a trained model of format {FORMAT}", where=folder, remedy="train it again")
    return card
