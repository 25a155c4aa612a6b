"""``card.json`` of a trained model: its architecture and its provenance. Reading it does not import torch."""

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vitcapr.artefacts.records import read_record
from vitcapr.errors import UserError
from vitcapr.files import write_json

WEIGHTS, CARD = "best.safetensors", "card.json"
FORMAT = "vitcapr-model-1"
_CONTENT = TypeAdapter(dict[str, Any])


def write_card(folder: Path, card: dict[str, Any]) -> None:
    write_json(folder / CARD, {"format": FORMAT, **card})


def read_card(path: Path) -> dict[str, Any]:
    """The content of the ``card.json`` at ``path``.

    Raises:
        UserError: the file is missing or is not the card of a trained model.
    """
    card = read_record(path, _CONTENT, "the card of a trained model", "train the model")
    if card.get("format") != FORMAT:
        raise UserError(
            f"not the card of a trained model of format {FORMAT}", where=path, remedy="train the model again"
        )
    return card
