"""The stages of image-text retrieval: text features, dual encoders, their embeddings and scores."""

from dataclasses import dataclass
from pathlib import Path

from vitcapr.config.dataset import find_data
from vitcapr.config.scored import RANKED
from vitcapr.workflow.features import FeatureStages
from vitcapr.workflow.machine import find_backbone
from vitcapr.workflow.rule import Wildcards
from vitcapr.workflow.selection import TEST, TRAIN, Selection
from vitcapr.workflow.text import TextStages


@dataclass(frozen=True)
class RetrievalStages:
    """Features and captions -> retrievers -> embeddings."""

    chosen: Selection
    features: FeatureStages
    text: TextStages

    def encoder_files(self, wildcards: Wildcards) -> dict[str, Path]:
        """The folder of a text encoder that lies on this machine, or its file of word vectors."""
        name = wildcards.encoder
        folder = find_backbone(self.chosen.config.text_encoders[name].source)
        return self.vector_files(name) or ({f"text_encoders.{name}.source": folder} if folder.is_dir() else {})

    def vector_files(self, encoder: str) -> dict[str, Path]:
        """The file of a text encoder that is word vectors."""
        config = self.chosen.config.text_encoders[encoder]
        return {f"text_encoders.{encoder}.source": find_data(config.source)} if config.output == "word_vectors" else {}

    def features_of(self, wildcards: Wildcards) -> str:
        """The sealed image features that a retriever looks at."""
        return self.features.sealed_of(self.chosen.config.retrievers[wildcards.retriever].backbone)

    def views_of(self, wildcards: Wildcards) -> list[str]:
        """The sealed features of its further views."""
        return [self.features.sealed_of(name) for name in self.chosen.config.retrievers[wildcards.retriever].views]

    def text_features_of(self, wildcards: Wildcards) -> list[str]:
        """The sealed text features that a retriever reads, if it reads any."""
        encoder = self.chosen.config.retrievers[wildcards.retriever].text.encoder
        return [] if encoder is None else [f"{self.chosen.root}/text_features/{encoder}/manifest.json"]

    def word_vectors_of(self, wildcards: Wildcards) -> list[str]:
        return self.text.vectors_named(self.chosen.config.retrievers[wildcards.retriever].text.word_vectors)

    def scored_embeddings_of(self, wildcards: Wildcards) -> str:
        """What is scored under the name of a model, with or without its query bank."""
        model = self.chosen.banked.get(wildcards.scored, wildcards.scored)
        return self.chosen.embeddings(model, wildcards.split)

    def pooled_embeddings_of(self, wildcards: Wildcards) -> str:
        return self.chosen.embeddings(self.chosen.banked.get(wildcards.scored, wildcards.scored), TEST)

    def query_bank_of(self, wildcards: Wildcards) -> list[str]:
        """The embeddings of the query bank, for scores that are corrected."""
        model = self.chosen.banked.get(wildcards.scored)
        return [] if model is None else [self.chosen.embeddings(model, TRAIN)]

    def bank_weight_of(self, wildcards: Wildcards) -> list[str]:
        model = self.chosen.banked.get(wildcards.scored)
        return [] if model is None else [f"{self.chosen.root}/query_banks/{model}/weight.json"]

    def files(self, folder: str, *files: str) -> list[str]:
        """``files`` under ``folder`` for every retriever and split that is shown."""
        return [
            f"{self.chosen.root}/{folder}/{retriever}/{split}/{file}"
            for retriever in self.chosen.ranked
            for split in self.chosen.splits
            for file in files
        ]

    @property
    def drawn(self) -> list[dict[str, str]]:
        """Every model and split that is shown, as wildcards; of models that differ in their seed alone the first."""
        models = self.chosen.drawn(self.chosen.ranked, *RANKED)
        return [{"retriever": model, "split": split} for model in models for split in self.chosen.splits]

    def rescored(self, folder: str, *files: str) -> list[str]:
        """As :meth:`files`, for everything that is scored with a query bank as well."""
        return [
            f"{self.chosen.root}/{folder}/{name}/{split}/{file}"
            for name in self.chosen.banked
            for split in self.chosen.splits
            for file in files
        ]
