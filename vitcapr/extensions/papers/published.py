"""Published numbers as data: those of the reproduced paper and of the related literature."""

from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

from vitcapr.errors import UserError

TABLE_NAMES = {
    "vitcap-r": (
        "captioning_flickr8k", "retrieval_flickr8k", "captioning_coco", "retrieval_coco",
        "hard_negatives", "training", "other_numbers",
    ),
    "blip2-flickr30k": (
        "literature_retrieval", "retrieval_flickr30k", "full_training", "heads", "training", "other_numbers",
    ),
    "bert-vit": ("retrieval_pairs", "gains", "representation", "training", "other_numbers"),
}  # fmt: skip
"""The papers, and the tables that are made for each in the order of its page; a table is a .md, a .csv and a .tex."""

Unit = Literal["fraction", "percent", "rank", "bits"]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Number(_Closed):
    """A printed number: the characters of the source, and their meaning.

    Attributes:
        notes: keys of the notes that say why it is not comparable.
    """

    printed: str
    """A plus sign after it is a lower bound."""
    unit: Unit
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Times 100 where it is a fraction; every printed digit is kept."""
        return format(Decimal(self.printed).scaleb(2), "f") if self.unit == "fraction" else self.printed

    @property
    def value(self) -> float:
        """Value in this project's units: fractions, and ranks."""
        number = Decimal(self.printed.rstrip("+"))
        return float(number.scaleb(-2) if self.unit == "percent" else number)


class PublishedRow(_Closed):
    """A system's numbers.

    Attributes:
        where: their place in the paper; empty for the literature, which has a citation.
        build: ``model/decoding``, or the retriever, of this build that stands beside it.
        split: the only split on which it does; empty for any.
    """

    system: str
    source: Literal["paper", "literature"] = "paper"
    where: str = ""
    citation: str = ""
    build: str = ""
    split: str = ""
    notes: tuple[str, ...] = ()
    values: dict[str, Number]

    @model_validator(mode="before")
    @classmethod
    def _the_row_says_it_once(cls, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row's unit is that of every number that has none of its own."""
        unit = {"unit": row.get("unit")}
        numbers = {metric: one if isinstance(one, dict) else {"printed": one} for metric, one in row["values"].items()}
        numbers = {metric: unit | one for metric, one in numbers.items()}
        return {**{key: value for key, value in row.items() if key != "unit"}, "values": numbers}

    @property
    def origin(self) -> str:
        return self.where or self.citation


class PublishedTable(_Closed):
    title: str
    dataset: str
    only_named: bool = False
    """Show no further rows of this build than those that stand for one of the paper."""
    metrics: tuple[str, ...]
    rows: tuple[PublishedRow, ...]


class Published(_Closed):
    name: str
    title: str
    citation: str
    any_data_stands_in: bool = False
    """This build's rows on other data sets stand under a row of the paper, too, and the caption says so."""
    notes: dict[str, str]
    tables: dict[str, PublishedTable]
    setups_caption: str
    training_setups: tuple[dict[str, str], ...]
    """How each system was trained, in words."""
    gains: dict[str, dict[str, str]] = {}
    """Printed gains: the kind of gain, then its value by metric."""
    other_numbers: tuple[tuple[str, str, str, str], ...]
    """Numbers that belong in no table of scores: quantity, as printed, where, and what stands for it here."""

    def numbers(self) -> list[tuple[str, PublishedRow, str, Number]]:
        """Table, row, metric and number of each, in the order of the files."""
        rows = [(name, row) for name, table in self.tables.items() for row in table.rows]
        return [(name, row, metric, number) for name, row in rows for metric, number in row.values.items()]


def read_published(paper: str) -> Published:
    """Return the paper's numbers.

    Raises:
        UserError: no numbers of such a paper are here.
    """
    if paper not in TABLE_NAMES:
        raise UserError(f"no published numbers of '{paper}'", remedy=f"known papers: {', '.join(TABLE_NAMES)}")
    text = (Path(__file__).with_suffix("") / f"{paper}.yaml").read_text(encoding="utf-8")
    return Published.model_validate(yaml.safe_load(text))
