"""Tables of training setups and of numbers outside score tables: the paper's and those of this build."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.formats.model import read_card
from vitcapr.formats.tables import NOTHING, Table, row
from vitcapr.studies.papers.numbers import Published
from vitcapr.studies.papers.side_by_side import BUILD

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
    try:
        return _setup(card.parent.name, content, content["settings"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = "not the card of a captioner or a retriever"
        raise UserError(what, where=card, remedy="name a card.json of one") from error


def _setup(name: str, content: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, str]:
    model = settings["captioner" if "captioner" in settings else "retriever"]
    phases = model["training"]["phases"]
    if not phases:
        return dict.fromkeys(_COLUMNS, NOTHING) | {"system": name, "objective": "nothing is learnt"}
    score = ", ".join(f"{value:.4f} ({kind.replace('_', ' ')})" for kind, value in content["best_score"].items())
    return {
        "system": name,
        "epochs": _by_phase(phases, "epochs"),
        "learning_rate": _by_phase(phases, "learning_rate"),
        "schedule": _by_phase(phases, "schedule"),
        "objective": _by_phase(phases, "objective"),
        **(_captioner(model, phases) if "captioner" in settings else _retriever(model, phases)),
        "best_loss": f"{score} in epoch {content['best_epoch']}",
    }


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


def _captioner(model: Mapping[str, Any], phases: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {
        "batch": _batch(phases, "images with all captions"),
        "dropout": str(model["dropout"]),
        "embedding": f"{model['word_vectors'] or 'trainable'}, {model['embedding_dim']}",
        "longest_caption": _by_phase(phases, "max_length"),
    }


def _retriever(model: Mapping[str, Any], phases: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    image, text = model["image"], model["text"]
    drawn = ", then ".join(dict.fromkeys(str(phase.get("captions_per_image") or "all") for phase in phases))
    if text["kind"] == "features":
        read = {"embedding": f"features of {text['encoder']}", "longest_caption": NOTHING}
    else:
        embedding = f"{text['word_vectors'] or 'trainable'}, {text['word_dim']}"
        read = {"embedding": embedding, "longest_caption": str(text["max_length"])}
    return {
        "batch": _batch(phases, f"images; captions of each: {drawn}") + _pairs(model),
        "objective": ", then ".join(dict.fromkeys(map(_contrast, phases))),
        "dropout": f"{image['dropout']} image, {text['dropout']} text",
        **read,
    }


def _batch(phases: Sequence[Mapping[str, Any]], of_images: str) -> str:
    """The size of a batch, in pairs or in images."""
    if all(phase.get("batch_pairs") for phase in phases):
        return f"{_by_phase(phases, 'batch_pairs')} pairs"
    return f"{_by_phase(phases, 'batch_images')} {of_images}"


def _pairs(model: Mapping[str, Any]) -> str:
    pairs = model["training"].get("pairs")
    return "" if pairs is None else f"; {pairs:,} pairs in all"


def _contrast(phase: Mapping[str, Any]) -> str:
    objective, mined = str(phase["objective"]).replace("_", "-"), phase["hard_negatives"]
    return f"{objective} with hard negatives ({mined})" if mined else objective


def _by_phase(phases: Sequence[Mapping[str, Any]], key: str) -> str:
    values = [str(phase[key]).replace("_", "-") for phase in phases]
    return values[0] if len(set(values)) == 1 and key != "epochs" else ", then ".join(values)
