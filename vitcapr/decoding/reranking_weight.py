"""The weight that a tuning found, and what it was found with: ``weight.json``."""

from dataclasses import dataclass
from typing import ClassVar

from vitcapr.chosen_weight import ChosenWeight


@dataclass(frozen=True)
class RerankingWeight(ChosenWeight):
    """A weight and the conditions under which it means something."""

    FORMAT: ClassVar[str] = "vitcapr-reranking-weight-1"
    STAGE: ClassVar[str] = "tune_reranking"

    length_penalty: float
    select_by: str
    """The score that decided."""
    decoded: float
    """That score of the captions as they were decoded, before any reranking."""
    retriever: str
    """sha256 of the weights of the retriever."""
    protocol: str
