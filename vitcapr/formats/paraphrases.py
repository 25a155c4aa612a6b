"""``card.json`` beside METEOR's paraphrases, ``table.gz``: of which references they are."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from vitcapr.formats.records import JsonRecord

CARD, TABLE = "card.json", "table.gz"
"""In one folder; the table has lines by three, a probability and two phrases."""


@dataclass(frozen=True)
class ParaphrasesCard(JsonRecord):
    """What a table of paraphrases is of."""

    FORMAT: ClassVar[str] = "vitcapr-paraphrases-1"
    KIND: ClassVar[str] = "a card of paraphrases"
    REMEDY: ClassVar[str] = "run the stage paraphrases"

    entries: Annotated[int, Field(ge=0)]
    references: str
    """sha256 of the references."""
    table: str
    """sha256 of ``table.gz``."""
