"""Configuration of query-bank scores: a correction of a model's scores for hubness by a bank of training queries."""

from typing import Annotated

from pydantic import Field

from vitcapr.config.base import Section, StageSettings


class QueryBankConfig(Section):
    """The values tried on the validation split."""

    inverse_temperatures: list[Annotated[float, Field(gt=0)]] = Field([5.0, 10.0, 20.0, 40.0], min_length=1)
    """Inverse temperatures to try. Larger values give more weight to the nearest queries of the bank."""
    grid_steps: int = Field(4, ge=1)
    """Number of equal steps between weight 0 (the cosine alone) and weight 1."""


class WeighQueryBankSettings(StageSettings):
    """The settings of the stage ``weigh_query_bank``."""

    query_bank: QueryBankConfig = QueryBankConfig()
