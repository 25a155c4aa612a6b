"""How many examples are drawn, and in which formats."""

from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section, StageSettings


class FiguresConfig(Section):
    formats: list[Literal["png", "pdf", "svg"]] = ["png", "pdf"]
    examples: int = Field(12, ge=1)
    """Captioned images in the sheet of examples."""
    attended: int = Field(2, ge=1)
    """Images whose attention is drawn word by word."""
    failures: int = Field(6, ge=1)
    """Images and captions drawn whose best match is a wrong one, of each as many."""
    seed: int = Field(0, ge=0)
    """Seed of the choice of examples."""


class FigureSettings(StageSettings):
    """What the figure stages read."""

    figures: FiguresConfig = FiguresConfig()
