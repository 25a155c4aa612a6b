"""Number of examples in the figures, and file formats of the figures."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from vitcapr.config.base import Section, StageSettings


def _distinct(names: list[str]) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"'{name}' is listed twice")
    return names


Distinct = Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_distinct)]


class FiguresConfig(Section):
    formats: list[Literal["png", "pdf", "svg"]] = ["png", "pdf"]
    examples: int = Field(12, ge=1)
    """Images in the sheet of captioned examples."""
    attention_images: int = Field(2, ge=1)
    """Images whose attention is drawn."""
    attention_first: Distinct = []
    """Images whose attention is drawn first, by id or file name. Random images follow up to ``attention_images``."""
    attention_words: Distinct = []
    """Words whose attention is drawn, where a caption holds any of them; empty: every word. The random images are those
    whose captions hold the most of these words."""
    failures: int = Field(6, ge=1)
    """Number of images, and number of captions, drawn with a wrong first match."""
    seed: int = Field(0, ge=0)
    """Seed that selects the examples."""


class FigureSettings(StageSettings):
    """The settings of the figure stages."""

    figures: FiguresConfig = FiguresConfig()
