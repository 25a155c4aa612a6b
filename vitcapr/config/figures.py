"""Number of examples in the figures, and file formats of the figures."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from vitcapr.config.base import Section, StageSettings


def _distinct(names: list[str]) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"'{name}' is listed twice")
    return names


Distinct = Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_distinct)]


def _none(value: Any) -> Any:
    return {"formats": []} if value in ("none", None) else value


class FiguresConfig(Section):
    formats: list[Literal["png", "pdf", "svg"]] = ["png", "pdf"]
    """Formats of every figure. Empty, or ``figures: none``: no figures; the first page keeps its examples."""
    examples: int = Field(12, ge=1)
    """Images in the sheet of captioned examples."""
    examples_first: Distinct = []
    """Images that come first, by id or file name, wherever examples are drawn: captions, captions before and after
    reranking, failures of retrieval, and the query of models side by side. Random ones follow."""
    examples_words: Distinct = []
    """Words or phrases: images and captions of the data set that hold any of them come next."""
    attention_images: int = Field(2, ge=1)
    """Images whose attention is drawn."""
    attention_first: Distinct = []
    """Images whose attention is drawn first, by id or file name. Random images follow up to ``attention_images``."""
    attention_words: Distinct = []
    """Words whose attention is drawn, where a caption holds any of them; empty: every word. There are as many further
    images as words, so that each word has an image, if any caption holds it."""
    failures: int = Field(6, ge=1)
    """Number of images, and number of captions, drawn with a wrong first match."""


FiguresOrNone = Annotated[FiguresConfig, BeforeValidator(_none, json_schema_input_type=FiguresConfig | Literal["none"])]
"""``none`` draws no figures."""


class FigureSettings(StageSettings):
    """The settings of the figure stages."""

    figures: FiguresConfig = FiguresConfig()
