"""All tables beside a paper: its numbers, this build's and the literature's; training setups, and other numbers."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import write_text
from vitcapr.formats.containers import frame_to_csv
from vitcapr.formats.model import read_card
from vitcapr.formats.tables import (
    NOTHING,
    PageSection,
    Table,
    row,
    to_csv,
    to_document,
    to_latex,
    to_markdown,
    to_page,
    write_page,
)
from vitcapr.studies.papers.changes import gains, hard_negatives, read_ranks
from vitcapr.studies.papers.numbers import TABLE_NAMES, Published, read_published
from vitcapr.studies.papers.side_by_side import BUILD, build_rows, seed_average, side_by_side

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
            "model.text.word_dim": "{} dimensions",
        },
    ),
    "longest_caption": ("longest caption", {f"{_PHASE}.max_length": "{}", "model.text.max_length": "{}"}),
    "best_loss": ("best validation score", {}),
}
"""The columns of the training set-ups: title, and the keys of a card whose values a cell shows, with the words around
each value."""


def paper_tables(
    paper: str,
    summary: pd.DataFrame,
    *,
    systems: Mapping[str, str],
    cards: Sequence[Path],
    ranks: Sequence[Path],
) -> list[Table]:
    """The tables of a paper in the order of its page.

    Args:
        systems: see :func:`~vitcapr.studies.papers.side_by_side.seed_average`.
        cards: files ``card.json``; ranks: files ``ranks.npz``.
    """
    published = read_published(paper)
    builds = seed_average(build_rows(summary), systems)
    others: dict[str, Callable[[], Table]] = {
        "hard_negatives": lambda: hard_negatives(published, builds, read_ranks(ranks)),
        "gains": lambda: gains(published, builds),
        "training": lambda: training(published, [read_training_setup(path) for path in cards]),
        "other_numbers": lambda: other_numbers(published),
    }
    return [others[name]() if name in others else side_by_side(name, published, builds) for name in TABLE_NAMES[paper]]


def beside_the_paper(paper: str, tables: Sequence[Table]) -> PageSection:
    """The tables that hold scores of the paper and of this build side by side, for the first page."""
    published = read_published(paper)
    scores = [table for table in tables if table.name in published.tables]
    scored = [{line[0].text for line in t.rows if any(cell.text != NOTHING for cell in line[2:-1])} for t in scores]
    both = [table for table, sources in zip(scores, scored, strict=True) if {BUILD, "paper"} <= sources]
    return PageSection("paper", "Beside the paper", f"{published.title}. {published.citation}.", both)


def write_paper_tables(
    paper: str, tables: Sequence[Table], *, page: Sequence[Path], latex: Path, numbers: Path
) -> None:
    """All tables as a page and a document, the published numbers as CSV.

    Each table stands beside the page as Markdown, CSV and LaTeX, too.
    """
    published = read_published(paper)
    for table in tables:
        for ending, text in (("md", to_markdown(table)), ("csv", to_csv(table)), ("tex", to_latex(table))):
            write_text(latex.with_name(f"{table.name}.{ending}"), text)
    title = f"{published.name}: paper, this build, literature"
    write_page(page, to_page(tables, title, f"{published.title}. {published.citation}."))
    write_text(latex, to_document(tables, title))
    write_text(numbers, frame_to_csv(published_numbers(published)))


def published_numbers(published: Published) -> pd.DataFrame:
    """Every published score, as printed and in this project's units: tidy, a row a number."""
    rows = []
    for table, each, metric, number in published.numbers():
        notes = " ".join(published.notes[key] for key in dict.fromkeys((*number.notes, *each.notes)))
        place = (table, each.source, each.system, metric)
        rows.append((*place, number.printed, number.unit, number.value, each.origin, notes))
    columns = ["table", "source", "system", "metric", "printed", "unit", "value", "from", "notes"]
    return pd.DataFrame(rows, columns=columns)


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
        **{name: _cell({**settings, "model": model}, keys) for name, (_, keys) in _COLUMNS.items()},
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


def other_numbers(published: Published) -> Table:
    return Table(
        "Other numbers of the paper",
        ("quantity", "paper", "from", "this build"),
        tuple(row(*one) for one in published.other_numbers),
        align="llll",
        caption="As printed in the paper; beside each, what stands for it in this build.",
        name="other_numbers",
    )
