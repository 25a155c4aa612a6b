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
    curve: list[dict[str, float]]
    """Of every weight tried: ``weight``, the score by its name, and ``changed``, the share of images whose caption is
    another."""
    retriever: str
    """sha256 of the weights of the retriever."""
    protocol: str
