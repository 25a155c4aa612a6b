"""``card.json`` beside METEOR's paraphrases, ``table.gz``: of which references they are."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vitcapr.artefacts.records import read_record
from vitcapr.files import write_json

FORMAT = "vitcapr-paraphrases-1"
CARD, TABLE = "card.json", "table.gz"
"""In one folder; the table has lines by three, a probability and two phrases."""


@dataclass(frozen=True)
class ParaphrasesCard:
    """What a table of paraphrases is of.

    Attributes:
        entries: their number.
        references: sha256 of the references.
        table: sha256 of ``table.gz``.
    """

    entries: int
    references: str
    table: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises:
        UserError: the card is missing or is none.
        """
        what, remedy = f"a card of paraphrases of format {FORMAT}", "run the stage paraphrases"
        content = read_record(path, _CONTENT, what, remedy)
        return cls(content.entries, content.references, content.table)

    def write(self, path: Path) -> None:
        write_json(path, {"format": FORMAT, **asdict(self)})


class _Content(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    format: Literal["vitcapr-paraphrases-1"]
    entries: Annotated[int, Field(ge=0)]
    references: str
    table: str


_CONTENT = TypeAdapter(_Content)
