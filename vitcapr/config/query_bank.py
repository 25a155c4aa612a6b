"""The correction of a model's scores by a bank of training queries."""

from typing import Annotated

from pydantic import Field

from vitcapr.config.base import Section, StageSettings


class QueryBankConfig(Section):
    """What is tried on the validation split."""

    inverse_temperatures: list[Annotated[float, Field(gt=0)]] = Field([5.0, 10.0, 20.0, 40.0], min_length=1)
    """The larger, the more the nearest of the bank decide how much of a hub an item is."""
    grid_steps: int = Field(4, ge=1)
    """Weights are tried from 0, the cosine alone, to 1 in so many steps."""


class WeighQueryBankSettings(StageSettings):
    """What the stage ``weigh_query_bank`` reads."""

    query_bank: QueryBankConfig = QueryBankConfig()
