"""Training set-ups of the systems of a paper and of this build, in words."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.extensions.papers.published import Published
from vitcapr.extensions.papers.side_by_side import BUILD
from vitcapr.formats.model import read_card
from vitcapr.formats.tables import NOTHING, Table, row

_PHASE = "model.training.phases.*"
_COLUMNS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "epochs": ("epochs", {f"{_PHASE}.epochs": "{}"}),
    "batch": (
        "batch",
        {
            f"{_PHASE}.batch_pairs": "{} pairs",
            f"{_PHASE}.batch_images": "{} images",
            f"{_PHASE}.captions_per_image": "captions of each: {}",
            "model.training.pairs": "{} pairs in all",
        },
    ),
    "learning_rate": ("learning rate", {f"{_PHASE}.learning_rate": "{}", "model.training.optimizer": "{}"}),
    "schedule": ("schedule", {f"{_PHASE}.schedule": "{}"}),
    "objective": (
        "objective",
        {
            f"{_PHASE}.objective": "{}",
            "model.temperature": "temperature {}",
            f"{_PHASE}.hard_negatives": "hard negatives: {}",
        },
    ),
    "dropout": (
        "dropout",
        {"captioner.dropout": "{}", "model.image.dropout": "{} image", "model.text.dropout": "{} text"},
    ),
    "embedding": (
        "word embedding",
        {
            "captioner.word_vectors": "{}",
            "captioner.embedding_dim": "{} dimensions",
            "model.text.word_vectors": "{}",
            "model.text.encoder": "features of {}",
            "model.text.*.source": "{}",
            "model.text.word_dim": "{} dimensions",
        },
    ),
    "trained": (
        "trained layers",
        {"model.image.top_layers": "image: {}", "model.text.*.top_layers": "text: {}"},
    ),
    "longest_caption": (
        "longest caption",
        {f"{_PHASE}.max_length": "{}", "model.text.max_length": "{}", "model.text.*.max_length": "{}"},
    ),
    "best_loss": ("best validation score", {}),
}
"""The columns of the training set-ups: title, and the keys of a card whose values a cell shows, with the words around
each value."""


def read_training_setup(card: Path) -> dict[str, str]:
    """Return a trained model's set-up in words, from its card; the folder's name is the model's.

    Raises:
        UserError: the file is missing or is not the card of a captioner, a retriever or a fine-tuned dual encoder.
    """
    content = read_card(card)
    settings = content["settings"] if isinstance(content.get("settings"), dict) else {}
    model = next((settings[kind] for kind in ("captioner", "retriever", "finetuned") if kind in settings), None)
    if not model:
        what = "not the card of a captioner, a retriever or a fine-tuned dual encoder"
        raise UserError(what, where=card, remedy="name a card.json of one")
    best = content.get("best_score", {}).items()
    score = ", ".join(f"{value:.4f} ({kind.replace('_', ' ')})" for kind, value in best)
    return {
        "system": card.parent.name,
        **{name: _cell({**settings, "model": model}, keys) for name, (_, keys) in _COLUMNS.items()},
        "best_loss": f"{score} in epoch {content['best_epoch']}" if best else NOTHING,
    }


def value_at(values: Any, key: str) -> Any:
    """Return the value at a dotted key; names may hold dots, and ``*`` gives those of all entries of a list or section.

    >>> value_at({"rate_0.1": {"phases": [{"epochs": 1}, {"epochs": 2}]}}, "rate_0.1.phases.*.epochs")
    [1, 2]

    Raises:
        KeyError: there is no such key.
    """
    if not key:
        return values
    if isinstance(values, list):
        entry, _, rest = key.partition(".")
        return [value_at(one, rest) for one in values] if entry == "*" else value_at(values[int(entry)], rest)
    if isinstance(values, Mapping):
        if key.startswith("*."):
            return [value_at(one, key[2:]) for one in values.values() if isinstance(one, Mapping)]
        for name in values:
            if key == name or key.startswith(f"{name}."):
                return value_at(values[name], key[len(name) + 1 :])
    raise KeyError(key)


def _cell(settings: Mapping[str, Any], keys: Mapping[str, str]) -> str:
    parts = []
    for key, words in keys.items():
        with suppress(KeyError):
            value = value_at(settings, key)
            phases = value if isinstance(value, list) else [value]
            if any(one is not None for one in phases) or (phases and key.endswith("top_layers")):
                values = ["all" if key.endswith("top_layers") and one is None else _shown(one) for one in phases]
                same = len(set(values)) == 1 and not key.endswith("epochs")
                parts.append(words.format(values[0] if same else ", then ".join(values)))
    return "; ".join(parts) or NOTHING


def _shown(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, Mapping):  # a loss with settings
        value = value["kind"]
    return f"{value:,}" if isinstance(value, int) else str(value).replace("_", "-")


def training(published: Published, setups: Sequence[Mapping[str, str]]) -> Table:
    """Return the paper's training set-ups, then those of this build's models."""
    printed = [("paper", one["where"], one) for one in published.training_setups]
    built = [(BUILD, "card.json", one) for one in setups]
    lines = [
        row(source, one["system"], *(one.get(key, NOTHING) for key in _COLUMNS), origin)
        for source, origin, one in [*printed, *built]
    ]
    return Table(
        "Training set-ups",
        ("source", "model", *(title for title, _ in _COLUMNS.values()), "from"),
        tuple(lines),
        align="l" * (len(_COLUMNS) + 3),
        caption=published.setups_caption,
        name="training",
    )
