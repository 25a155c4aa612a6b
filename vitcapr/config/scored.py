"""The names under which models are scored, and which of them are the same but for their seed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vitcapr.config.base import Section

RANKED = ("retrievers", "finetuned_dual_encoders")
"""The sections of models for image-text retrieval."""
QUERY_BANK = "query_bank"


class SeededModel(Section):
    of: str
    """The definition it was made from."""
    vary: str
    """What else was varied in it, as its name says, and what the name of its scores ends in; empty for nothing."""
    seed: int

    @property
    def system(self) -> str:
        """The name without the seed."""
        return "-".join(filter(None, (self.of, self.vary)))


@dataclass(frozen=True)
class ScoredModels:
    """The models that an experiment scores, by name.

    Attributes:
        config: an :class:`~vitcapr.config.experiment.ExperimentConfig`. Stages whose settings are made here must not
            depend on all of the configuration, so its type is not imported.
    """

    config: Any

    @property
    def captioners(self) -> list[str]:
        return unique(self.config.run.captioners)

    @property
    def retrievers(self) -> list[str]:
        """Those that are shown and scored."""
        return unique(self.config.run.retrievers)

    @property
    def finetuned_dual_encoders(self) -> list[str]:
        """The fine-tuned dual encoders to embed and score."""
        return unique(self.config.run.finetuned_dual_encoders)

    @property
    def ranked(self) -> list[str]:
        """All models whose embeddings are scored and shown: fine-tuned dual encoders with all their languages together
        and with each."""
        embedded = map(self._embedded_as, self.finetuned_dual_encoders)
        return [*self.retrievers, *(name for names in embedded for name in names)]

    @property
    def querybank_scores(self) -> dict[str, str]:
        """The names of the query-bank scores, and for each the name of the model's embeddings."""
        models = unique(self.config.run.query_banks)
        names = [name for model in models for name in self._embedded_as(model)]
        return {f"{name}-{QUERY_BANK}": name for name in names}

    @property
    def scored(self) -> list[str]:
        """The names of all scores computed from embeddings."""
        return [*self.ranked, *self.querybank_scores]

    @property
    def ablations(self) -> list[tuple[str, str]]:
        """The whole model and one that lacks something: of each language that both read, and of all together if they
        read the same."""
        pairs = []
        for whole, models in self.config.run.ablations.items():
            for model in models:
                mine, others = self.by_language(whole), self.by_language(model)
                pairs += [(whole, model)] if mine.keys() == others.keys() else []
                pairs += [(name, others[language]) for language, name in mine.items() if language in others]
        return list(dict.fromkeys(pairs))

    def seeds(self, *sections: str) -> dict[str, SeededModel]:
        """The models of these sections that a grid gave a seed, by the names of their scores: with a language for one
        language of a fine-tuned dual encoder, and with ``query_bank`` for the scores with a query bank."""
        made = {}
        variants = [each for section in sections for each in self.config.variants.get(section, {}).items()]
        for name, variant in variants:
            if isinstance(seed := variant.vary.get("seed"), int):
                others = variant.without("seed").removeprefix(variant.of)
                for scored in self._embedded_as(name):
                    vary = f"{others}{scored.removeprefix(name)}".removeprefix("-")
                    made[scored] = SeededModel(of=variant.of, vary=vary, seed=seed)
        for name, model in self.querybank_scores.items():
            if model in made:
                vary = f"{made[model].vary}-{QUERY_BANK}".removeprefix("-")
                made[name] = made[model].model_copy(update={"vary": vary})
        return made

    @property
    def systems(self) -> dict[str, str]:
        """The system of each scored model that is one seed of it."""
        seeds = self.seeds(*RANKED)
        return {name: seeds[name].system for name in self.scored if name in seeds}

    @property
    def seeded(self) -> dict[str, SeededModel]:
        """The models scored that a grid gave seeds of their own."""
        captioners, ranked = self.seeds("captioners"), self.seeds(*RANKED)
        made = {name: captioners[name] for name in self.captioners if name in captioners}
        return made | {name: ranked[name] for name in self.scored if name in ranked}

    def _embedded_as(self, model: str) -> list[str]:
        """The names of a model's embeddings."""
        return unique([model, *self.by_language(model).values()])

    def by_language(self, model: str) -> dict[str, str]:
        """The languages that a model reads, and the name of its embeddings of each."""
        finetuned = self.config.finetuned_dual_encoders.get(model)
        languages = [self.config.text.language] if finetuned is None else finetuned.languages
        return {language: f"{model}-{language}" if len(languages) > 1 else model for language in languages}


def unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
