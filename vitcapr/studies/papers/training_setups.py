"""Tables of training setups and of numbers outside score tables: the paper's and those of this build."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.formats.model import read_card
from vitcapr.formats.tables import NOTHING, Table, row
from vitcapr.studies.papers.numbers import Published
from vitcapr.studies.papers.recipe import value_at
from vitcapr.studies.papers.side_by_side import BUILD

_SETTINGS = {
    "epochs": {"model.training.phases.*.epochs": "{}"},
    "batch": {
        "model.training.phases.*.batch_pairs": "{} pairs",
        "model.training.phases.*.batch_images": "{} images",
        "model.training.phases.*.captions_per_image": "captions of each: {}",
        "model.training.pairs": "{} pairs in all",
    },
    "learning_rate": {"model.training.phases.*.learning_rate": "{}"},
    "schedule": {"model.training.phases.*.schedule": "{}"},
    "objective": {
        "model.training.phases.*.objective": "{}",
        "model.training.phases.*.hard_negatives": "hard negatives: {}",
    },
    "dropout": {"captioner.dropout": "{}", "model.image.dropout": "{} image", "model.text.dropout": "{} text"},
    "embedding": {
        "captioner.word_vectors": "{}",
        "captioner.embedding_dim": "{} dimensions",
        "model.text.word_vectors": "{}",
        "model.text.encoder": "features of {}",
        "model.text.word_dim": "{} dimensions",
    },
    "longest_caption": {"model.training.phases.*.max_length": "{}", "model.text.max_length": "{}"},
}
"""What a cell shows: the settings at these keys, as far as the model has them, and the words around each value."""
_COLUMNS = {
    "epochs": "epochs",
    "batch": "batch",
    "learning_rate": "learning rate",
    "schedule": "schedule",
    "objective": "objective",
    "dropout": "dropout",
    "embedding": "word embedding",
    "longest_caption": "longest caption",
    "best_loss": "best validation score",
}


def read_training_setup(card: Path) -> dict[str, str]:
    """A trained model's set-up in words, from its card; the folder's name is the model's.

    Raises:
        UserError: the file is missing or is not the card of a captioner or a retriever.
    """
    content = read_card(card)
    settings = content["settings"] if isinstance(content.get("settings"), dict) else {}
    model = settings.get("captioner") or settings.get("retriever")
    if not model:
        what = "not the card of a captioner or a retriever"
        raise UserError(what, where=card, remedy="name a card.json of one")
    best = content.get("best_score", {}).items()
    score = ", ".join(f"{value:.4f} ({kind.replace('_', ' ')})" for kind, value in best)
    return {
        "system": card.parent.name,
        **{column: _cell({**settings, "model": model}, keys) for column, keys in _SETTINGS.items()},
        "best_loss": f"{score} in epoch {content['best_epoch']}" if best else NOTHING,
    }


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
        ("source", "model", *_COLUMNS.values(), "from"),
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
