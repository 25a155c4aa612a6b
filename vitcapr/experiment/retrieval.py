"""The files of dual encoders: what they read, their embeddings and scores."""

from dataclasses import dataclass

from vitcapr.config.experiment import unique
from vitcapr.experiment import paths
from vitcapr.experiment.models import TRAIN, Part
from vitcapr.experiment.rule import Wildcards
from vitcapr.experiment.stores import Features

PAIRS = "training.pairs"
"""The setting of a retriever that a learning curve varies."""


@dataclass(frozen=True)
class Retrieval(Part):
    """Retrievers on stored features, and the embeddings and scores of all models."""

    stores: Features

    def features(self, job: Wildcards) -> str:
        """Return the features that a retriever reads."""
        return self.stores.sealed(self.config.retrievers[job.retriever].backbone)

    def augmented_views(self, job: Wildcards) -> list[str]:
        return self.stores.sealed_views(self.config.retrievers[job.retriever].augmented_views)

    def text_features(self, job: Wildcards) -> list[str]:
        """Return the captions of a retriever as vectors, where it reads such."""
        return self.stores.text_features(self.config.retrievers[job.retriever].text.text_encoder)

    def word_vectors(self, job: Wildcards) -> list[str]:
        """Return the word vectors that initialise the text tower of a retriever."""
        name = getattr(self.config.retrievers[job.retriever].text, "word_vectors", None)
        return [] if name is None else [self.path(paths.WORD_VECTORS, vectors=name)]

    @property
    def retrievals(self) -> list[dict[str, str]]:
        """The models and splits whose retrieval is drawn, as wildcards."""
        models = self.models.representatives(self.models.ranked)
        return [{"retriever": model, "split": split} for model in models for split in self.models.splits]

    @property
    def compared(self) -> dict[str, dict[str, str]]:
        """Models to draw together, with the names of their embeddings, for each language."""
        models: dict[str, dict[str, str]] = {}
        for name in self.models.representatives(unique(self.config.run.compared)):
            for language, embedded in self.models.by_language(name).items():
                models.setdefault(language, {})[name] = embedded
        return models

    @property
    def pair_families(self) -> dict[str, list[str]]:
        """Retrievers that a grid made by varying the number of training pairs, for each base retriever."""
        variants = self.config.variants.get("retrievers", {})
        varied = {variant.of for variant in variants.values() if PAIRS in variant.vary}
        families: dict[str, list[str]] = {}
        for name in self.models.retrievers:
            family = variants[name].of if name in variants else name
            if family in varied:
                families.setdefault(family, []).append(name)
        return families

    @property
    def recall_scores(self) -> dict[str, list[str]]:
        """The scores in the figure of recall, by system: a pattern of each training."""
        # Models of a learning curve have a figure of their own. They are in this one only if there are no others.
        variants = self.config.variants.get("retrievers", {})
        others = [name for name in self.models.ranked if name not in variants or PAIRS not in variants[name].vary]
        banks = {model: name for name, model in self.models.querybank_scores.items()}
        names = [each for name in others or self.models.ranked for each in (name, banks.get(name)) if each is not None]
        systems, files = self.models.systems, dict[str, list[str]]()
        for name in names:
            files.setdefault(systems.get(name, name), []).append(paths.fill(paths.RETRIEVAL_SCORES, scored=name))
        return files

    def embeddings(self, model: str, split: str) -> str:
        """Return a model's embeddings of a split."""
        return self.path(paths.EMBEDDINGS, embedded=model, split=split)

    def scored_embeddings(self, wildcards: Wildcards) -> str:
        """Return the embeddings that are scored under a name, with or without a query bank."""
        return self.embeddings(self._embedded(wildcards), wildcards.split)

    def pooled_embeddings(self, wildcards: Wildcards) -> list[str]:
        """Return the embeddings of the queries' split and of the splits of distractors."""
        return [self.embeddings(self._embedded(wildcards), split) for split in self.models.pooled_splits]

    def query_bank(self, wildcards: Wildcards) -> list[str]:
        model = self.models.querybank_scores.get(wildcards.scored)
        return [] if model is None else [self.embeddings(model, TRAIN)]

    def bank_weight(self, wildcards: Wildcards) -> list[str]:
        model = self.models.querybank_scores.get(wildcards.scored)
        return [] if model is None else [self.path(paths.QUERY_BANK_WEIGHT, querybank_scores=model)]

    def _embedded(self, wildcards: Wildcards) -> str:
        return self.models.querybank_scores.get(wildcards.scored, str(wildcards.scored))

    @property
    def ranks(self) -> list[str]:
        return self.every(paths.RANKS, scored=self.models.ranked, split=self.models.splits)

    @property
    def ablated_ranks(self) -> list[str]:
        """The ranks of the models of ablations."""
        names = unique(name for pair in self.models.ablations for name in pair)
        return self.every(paths.RANKS, scored=names, split=self.models.splits)
