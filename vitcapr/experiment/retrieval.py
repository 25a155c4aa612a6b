"""The files of image-text retrieval: text features, retrievers, embeddings and scores."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vitcapr.config.dataset import find_data
from vitcapr.config.scored import RANKED
from vitcapr.experiment.features import FeatureStages
from vitcapr.experiment.names import unique
from vitcapr.experiment.selection import TRAIN, Selection
from vitcapr.experiment.text import TextStages
from vitcapr.pipeline.paths import find_backbone
from vitcapr.pipeline.rule import Wildcards

PAIRS = "training.pairs"
"""The setting of a retriever that a learning curve varies."""


@dataclass(frozen=True)
class RetrievalStages:
    """Features and captions -> retrievers -> embeddings."""

    selection: Selection
    features: FeatureStages
    text: TextStages

    @property
    def text_encoders(self) -> list[str]:
        """The text encoders of the retrievers to train and of alignments."""
        wanted = (self.selection.config.retrievers[name].text.text_encoder for name in self.selection.needed_retrievers)
        aligned = (self.selection.config.alignments[name].text for name in self.selection.alignments)
        return unique(name for name in (*wanted, *aligned) if name is not None)

    @property
    def drawn_retrievers(self) -> list[str]:
        """The retrievers whose training is drawn: one for each group of seeds, without those that have no weights to
        learn."""
        drawn = self.selection.representatives(self.selection.needed_retrievers, "retrievers")
        return [name for name in drawn if self.selection.config.retrievers[name].learns]

    @property
    def compared(self) -> dict[str, dict[str, str]]:
        """For each language, the models to draw side by side and the names of their embeddings."""
        found: dict[str, dict[str, str]] = {}
        for name in self.selection.representatives(unique(self.selection.config.run.compared), *RANKED):
            spoken = self._spoken(name)
            for language in spoken:
                found.setdefault(language, {})[name] = f"{name}-{language}" if len(spoken) > 1 else name
        return found

    def _spoken(self, model: str) -> list[str]:
        """The languages of the captions that a retriever or a fine-tuned dual encoder embeds."""
        return (
            self.selection.config.finetuned_dual_encoders[model].languages
            if model in self.selection.finetuned_dual_encoders
            else [self.selection.config.text.language]
        )

    def is_on_a_curve(self, retriever: str) -> bool:
        """Whether a grid varied its number of training pairs."""
        variant = self.selection.config.variants.get("retrievers", {}).get(retriever)
        return variant is not None and PAIRS in variant.vary

    @property
    def pair_families(self) -> dict[str, list[str]]:
        """For each definition with a varied number of training pairs, the retrievers to show."""
        made = self.selection.config.variants.get("retrievers", {})
        varied = {variant.of for variant in made.values() if PAIRS in variant.vary}
        families: dict[str, list[str]] = {}
        for name in self.selection.retrievers:
            family = made[name].of if name in made else name
            if family in varied:
                families.setdefault(family, []).append(name)
        return families

    def encoder_files(self, wildcards: Wildcards) -> dict[str, Path]:
        """The folder of a local text encoder, or its word-vector file."""
        return self.files_of_encoders([wildcards.encoder])

    def files_of_encoders(self, names: Iterable[str]) -> dict[str, Path]:
        """The folders of local text encoders, and word-vector files."""
        found: dict[str, Path] = {}
        for name in names:
            folder = find_backbone(self.selection.config.text_encoders[name].source)
            found |= self.vector_files(name) or ({f"text_encoders.{name}.source": folder} if folder.is_dir() else {})
        return found

    def vector_files(self, encoder: str) -> dict[str, Path]:
        """The word-vector file of a text encoder of word vectors; empty for others."""
        config = self.selection.config.text_encoders[encoder]
        return {f"text_encoders.{encoder}.source": find_data(config.source)} if config.output == "word_vectors" else {}

    def features_of(self, wildcards: Wildcards) -> str:
        """The sealed image features of a retriever."""
        return self.features.sealed_of(self.selection.config.retrievers[wildcards.retriever].backbone)

    def augmented_views_of(self, wildcards: Wildcards) -> list[str]:
        """The sealed features of its augmented views."""
        return [
            self.features.sealed_of(name)
            for name in self.selection.config.retrievers[wildcards.retriever].augmented_views
        ]

    def text_features_of(self, wildcards: Wildcards) -> list[str]:
        """The sealed text features that a retriever reads, if it reads any."""
        encoder = self.selection.config.retrievers[wildcards.retriever].text.text_encoder
        return [] if encoder is None else [f"{self.selection.root}/text_features/{encoder}/manifest.json"]

    def word_vectors_of(self, wildcards: Wildcards) -> list[str]:
        return self.text.vectors_named(self.selection.config.retrievers[wildcards.retriever].text.initial_vectors)

    def scored_embeddings_of(self, wildcards: Wildcards) -> str:
        """The embeddings that are scored under a name, with or without a query bank."""
        model = self.selection.querybank_scores.get(wildcards.scored, wildcards.scored)
        return self.selection.embeddings(model, wildcards.split)

    def pooled_embeddings_of(self, wildcards: Wildcards) -> list[str]:
        """The embeddings of the queries' split and of the splits of distractors."""
        model = self.selection.querybank_scores.get(wildcards.scored, wildcards.scored)
        return [self.selection.embeddings(model, split) for split in self.selection.pooled_splits]

    def query_bank_of(self, wildcards: Wildcards) -> list[str]:
        """The embeddings of the query bank, for scores that are corrected."""
        model = self.selection.querybank_scores.get(wildcards.scored)
        return [] if model is None else [self.selection.embeddings(model, TRAIN)]

    def bank_weight_of(self, wildcards: Wildcards) -> list[str]:
        model = self.selection.querybank_scores.get(wildcards.scored)
        return [] if model is None else [f"{self.selection.root}/query_banks/{model}/weight.json"]

    def files(self, folder: str, *files: str) -> list[str]:
        """``files`` under ``folder`` for every model and split of ``run``."""
        return [
            f"{self.selection.root}/{folder}/{retriever}/{split}/{file}"
            for retriever in self.selection.ranked
            for split in self.selection.splits
            for file in files
        ]

    @property
    def drawn(self) -> list[dict[str, str]]:
        """Every model and split to draw, as wildcards. Of models that differ only in their seed, the first is drawn."""
        models = self.selection.representatives(self.selection.ranked, *RANKED)
        return [{"retriever": model, "split": split} for model in models for split in self.selection.splits]

    def rescored(self, folder: str, *files: str) -> list[str]:
        """Like :meth:`files`, for all query-bank scores."""
        return [
            f"{self.selection.root}/{folder}/{name}/{split}/{file}"
            for name in self.selection.querybank_scores
            for split in self.selection.splits
            for file in files
        ]
