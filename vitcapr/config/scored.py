"""The names under which models are scored, and which of them are the same but for their seed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from vitcapr.config.base import Section
from vitcapr.config.grid import VariantConfig

RANKED = ("retrievers", "finetuned_dual_encoders")
"""The sections of models for image-text retrieval."""
QUERY_BANK = "query_bank"


class SeededModel(Section):
    of: str
    """The definition it was made from."""
    vary: str
    """What else was varied in it, as its name says; empty for nothing."""
    seed: int


class ScoredVariant(NamedTuple):
    """A variant, and what the name of its scores ends in."""

    variant: VariantConfig
    endings: tuple[str, ...] = ()

    def without(self, key: str) -> str:
        """The name of the scores if ``key`` did not vary."""
        return "-".join([self.variant.without(key), *self.endings])


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
    def matched(self) -> list[str]:
        """The names of the embeddings of fine-tuned dual encoders: all languages together, and each language
        separately."""
        return [name for finetuned in self.finetuned_dual_encoders for name in self._embedded_as(finetuned)]

    @property
    def ranked(self) -> list[str]:
        """All models whose embeddings are scored and shown."""
        return [*self.retrievers, *self.matched]

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

    def variants(self, *kinds: str) -> dict[str, "ScoredVariant"]:
        """The variants that a grid made, by the names of their scores: with a language for one language of a fine-tuned
        dual encoder, and with ``query_bank`` for the scores with a query bank.

        Args:
            kinds: sections of the configuration.
        """
        made = {
            name: ScoredVariant(variant)
            for kind in kinds
            for name, variant in self.config.variants.get(kind, {}).items()
        }
        for finetuned in made.keys() & self.config.finetuned_dual_encoders.keys():
            for language, name in self.by_language(finetuned).items():
                if name != finetuned:
                    made[name] = ScoredVariant(made[finetuned].variant, (language,))
        for name, model in self.querybank_scores.items():
            if model in made:
                made[name] = ScoredVariant(made[model].variant, (*made[model].endings, QUERY_BANK))
        return made

    def system_name(self, model: str) -> str:
        """The system of a scored model: its name, without the seed if a grid varied the seed."""
        variant = self.variants(*RANKED).get(model)
        return model if variant is None else variant.without("seed")

    @property
    def systems(self) -> dict[str, str]:
        """The system of each scored model that is one seed of it."""
        return {name: system for name in self.scored if (system := self.system_name(name)) != name}

    @property
    def seeded(self) -> dict[str, SeededModel]:
        """The models scored that a grid gave seeds of their own."""
        captioners, ranked = self.variants("captioners"), self.variants(*RANKED)
        made = {name: captioners[name] for name in self.captioners if name in captioners}
        made |= {name: ranked[name] for name in self.scored if name in ranked}
        seeded = {}
        for name, variant in made.items():
            if isinstance(seed := variant.variant.vary.get("seed"), int):
                of = variant.variant.of
                vary = variant.without("seed").removeprefix(of).removeprefix("-")
                seeded[name] = SeededModel(of=of, vary=vary, seed=seed)
        return seeded

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
