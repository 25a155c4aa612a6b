"""``card.json`` of a trained model: its architecture and its provenance. Reading it does not import torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from vitcapr.errors import UserError
from vitcapr.files import canonical_json, sha256_bytes, write_json
from vitcapr.formats.records import read_record

WEIGHTS, CARD = "best.safetensors", "card.json"
FORMAT = "vitcapr-model-2"
DIGEST = "sha256"
"""In the card: the digest of all the rest."""
_CONTENT = TypeAdapter(dict[str, Any])


def write_card(folder: Path, card: dict[str, Any]) -> None:
    content = {"format": FORMAT, **card}
    write_json(folder / CARD, {**content, DIGEST: digest_of(content)})


def digest_of(content: dict[str, Any]) -> str:
    """Of a card without its digest."""
    return sha256_bytes(canonical_json(content).encode("utf-8", "surrogatepass"))


def read_card(path: Path) -> dict[str, Any]:
    """The content of the ``card.json`` at ``path``.

    Raises:
        UserError: the file is missing or is not the card of a trained model.
    """
    card = read_record(path, _CONTENT, "the card of a trained model", "train the model")
    remedy = "train the model again"
    if card.get("format") != FORMAT:
        raise UserError(f"not the card of a trained model of format {FORMAT}", where=path, remedy=remedy)
    if card.pop(DIGEST, None) != digest_of(card):
        raise UserError("damaged: the card is not as it was written", where=path, remedy=remedy)
    return card


def layer_of(card: Mapping[str, Any], kind: Literal["captioner", "retriever"]) -> int | None:
    """The hidden layer of its backbone that a model reads, counted from 1; None: the output."""
    layer: int | None = card.get("settings", {}).get(kind, {}).get("layer")
    return layer
