"""What the first page of an experiment shows."""

from typing import Any, Self

from vitcapr.config.base import StageSettings
from vitcapr.config.scored import ScoredModels, SeededModel
from vitcapr.rooms import ask


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
