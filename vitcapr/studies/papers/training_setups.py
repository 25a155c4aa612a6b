"""Tables of training setups and of numbers outside score tables: the paper's and those of this build."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from vitcapr.errors import UserError
from vitcapr.formats.model import read_card
from vitcapr.formats.tables import NOTHING, Table, row
from vitcapr.studies.papers.numbers import Published
from vitcapr.studies.papers.side_by_side import BUILD

_COLUMNS: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
"""Title and settings of each, by the name of its cells."""


def read_training_setup(card: Path) -> dict[str, str]:
    """A trained model's set-up in words, from its card; the folder's name is the model's.

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
        **{name: _cell({**settings, "model": model}, column["settings"]) for name, column in _COLUMNS.items()},
        "best_loss": f"{score} in epoch {content['best_epoch']}" if best else NOTHING,
    }


def value_at(values: Any, key: str) -> Any:
    """The value at a dotted key; names may hold dots, and ``*`` gives the values of all entries of a list.

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
            if any(one is not None for one in phases):
                values = [_shown(one) for one in phases]
                same = len(set(values)) == 1 and not key.endswith("epochs")
                parts.append(words.format(values[0] if same else ", then ".join(values)))
    return "; ".join(parts) or NOTHING


def _shown(value: Any) -> str:
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else str(value).replace("_", "-")


def training(published: Published, setups: Sequence[Mapping[str, str]]) -> Table:
    """The paper's training set-ups, then those of this build's models."""
    printed = [("paper", one["where"], one) for one in published.training_setups]
    built = [(BUILD, "card.json", one) for one in setups]
    lines = [
        row(source, one["system"], *(one[key] for key in _COLUMNS), origin) for source, origin, one in printed + built
    ]
    return Table(
        "Training set-ups",
        ("source", "model", *(column["title"] for column in _COLUMNS.values()), "from"),
        tuple(lines),
        align="l" * (len(_COLUMNS) + 3),
        caption=published.setups_caption,
        name="training",
    )


def other_numbers(published: Published) -> Table:
    return Table(
        "Other numbers of the paper",
        ("quantity", "paper", "from", "this build"),
        tuple(row(*(one[key] for key in ("quantity", "printed", "where", "build"))) for one in published.other_numbers),
        align="llll",
        caption="As printed in the paper; beside each, what stands for it in this build.",
        name="other_numbers",
    )
