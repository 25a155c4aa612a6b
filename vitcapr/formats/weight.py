"""``weight.json``: a weight selected on the validation split, and the settings of the selection."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from vitcapr.formats.records import JsonRecord


@dataclass(frozen=True)
class ChosenWeight(JsonRecord):
    """The fields of every weight; a stage adds its own."""

    KIND: ClassVar[str] = "a weight"

    weight: Annotated[float, Field(ge=0, le=1)]
    curve: list[dict[str, float]]
    """A row for everything that was tried: ``weight``, what else was varied, and what came of it."""


@dataclass(frozen=True)
class RerankingWeight(ChosenWeight):
    """The weight of a retriever in reranking, and the conditions under which it means something."""

    FORMAT: ClassVar[str] = "vitcapr-reranking-weight-1"
    REMEDY: ClassVar[str] = "run tune_reranking"

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
    REMEDY: ClassVar[str] = "run weigh_query_bank"

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
