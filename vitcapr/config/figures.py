"""Number of examples in the figures, and file formats of the figures."""

from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section, StageSettings


class FiguresConfig(Section):
    formats: list[Literal["png", "pdf", "svg"]] = ["png", "pdf"]
    examples: int = Field(12, ge=1)
    """Images in the sheet of captioned examples."""
    attended: int = Field(2, ge=1)
    """Images whose attention is drawn for every word."""
    failures: int = Field(6, ge=1)
    """Number of images, and number of captions, drawn with a wrong first match."""
    seed: int = Field(0, ge=0)
    """Seed that selects the examples."""


class FigureSettings(StageSettings):
    """The settings of the figure stages."""

    figures: FiguresConfig = FiguresConfig()
