"""``weight.json``: a weight selected on the validation split, and the settings of the selection."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from vitcapr.artefacts.records import read_record, reason_of
from vitcapr.errors import UserError
from vitcapr.files import write_json

_CONTENT = TypeAdapter(dict[str, Any])


@dataclass(frozen=True)
class ChosenWeight:
    """Its fields are those of the file; a stage adds its own."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    FORMAT: ClassVar[str]
    STAGE: ClassVar[str]
    """The stage that makes it."""

    weight: Annotated[float, Field(ge=0, le=1)]
    curve: list[dict[str, float]]
    """A row for everything that was tried: ``weight``, what else was varied, and what came of it."""

    def write(self, path: Path) -> None:
        write_json(path, {"format": self.FORMAT, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises:
        UserError: the file is missing or is not such a file.
        """
        what, remedy = f"a weight of format {cls.FORMAT}", f"run {cls.STAGE}"
        content = read_record(path, _CONTENT, what, remedy)
        if content.pop("format", None) != cls.FORMAT:
            raise UserError(f"not {what}", where=path, remedy=f"{remedy} again")
        try:
            return TypeAdapter(cls).validate_json(json.dumps(content))
        except ValidationError as error:
            raise UserError(f"not {what}: {reason_of(error)}", where=path, remedy=f"{remedy} again") from error


@dataclass(frozen=True)
class RerankingWeight(ChosenWeight):
    """The weight of a retriever in reranking, and the conditions under which it means something."""

    FORMAT: ClassVar[str] = "vitcapr-reranking-weight-1"
    STAGE: ClassVar[str] = "tune_reranking"

    length_penalty: Annotated[float, Field(ge=0)]
    select_by: str
    """The score that decided."""
    decoded: float
    """That score of the captions as they were decoded, before any reranking."""
    retriever: str
    """sha256 of the weights of the retriever."""
    protocol: str


@dataclass(frozen=True)
class QueryBankWeight(ChosenWeight):
    """The weight of a query bank in the correction of scores for hubness."""

    FORMAT: ClassVar[str] = "vitcapr-query-bank-1"
    STAGE: ClassVar[str] = "weigh_query_bank"

    inverse_temperature: Annotated[float, Field(gt=0)]
    images: Annotated[int, Field(ge=1)]
    """In the bank."""
    captions: Annotated[int, Field(ge=1)]
    chosen_by: str

    @property
    def protocol(self) -> str:
        """The part of a protocol that describes the correction of the scores."""
        bank = f"train {self.images}images {self.captions}captions"
        return (
            f"query-bank:{bank},inverse-temperature={self.inverse_temperature:g},weight={self.weight:g} "
            f"chosen on validation"
        )
