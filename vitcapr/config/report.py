"""What the figures and the first page of an experiment show."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from vitcapr.config.base import Section, StageSettings
from vitcapr.config.scored import ScoredModels, SeededModel
from vitcapr.rooms import ask


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


class FirstPageSettings(StageSettings):
    language: str
    """Of the references."""
    images: list[str]
    """Pictures that come first, by id or file name."""
    words: list[str]
    """Pictures with captions that hold any of them come next."""
    seeded: dict[str, SeededModel]
    """The models that a grid gave seeds of their own."""
    bases: dict[str, str]
    """For each reranked system of captions, the one whose captions a retriever reorders."""
    has_oracle: bool
    facts: dict[str, str]
    """What the experiment consists of, for the head of the page."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        scored = ScoredModels(config)
        rerankings = {name: config.rerankings[name] for name in config.run.rerankings}
        models = {
            "captioners": [f"{name} (on {config.captioners[name].backbone})" for name in config.run.captioners],
            "decodings": config.run.decodings,
            "rerankings": [f"{name} (of {each.decoding})" for name, each in rerankings.items()],
            "retrievers": [f"{name} (on {config.retrievers[name].backbone})" for name in config.run.retrievers],
            "fine-tuned dual encoders": config.run.finetuned_dual_encoders,
            **dict(ask("facts", config)),
        }
        return cls(
            language=config.text.language,
            images=config.figures.examples_first,
            words=config.figures.examples_words,
            seeded=scored.seeded,
            bases={
                f"{captioner}/{name}": f"{captioner}/{each.decoding}"
                for captioner in config.run.captioners
                for name, each in rerankings.items()
                if each.by == "retriever"
            },
            has_oracle=any(each.by == "oracle" for each in rerankings.values()),
            facts={name: ", ".join(of_kind) for name, of_kind in models.items() if of_kind}
            | {"seed": f"{config.seed}, unless a model sets one"},
        )
