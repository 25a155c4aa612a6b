"""The stages of DeViSE: a linear map from image features to word vectors, and its embeddings."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitcapr.config.devise import TrainDeviseSettings
from vitcapr.workflow.features import FeatureStages
from vitcapr.workflow.selection import Selection
from vitcapr.workflow.stage import Stage, Wildcards
from vitcapr.workflow.text import TextStages

_HOW = frozenset({"devise.device", "embed.batch", "embed.device"})
"""Settings that say how it is computed."""


@dataclass(frozen=True)
class DeviseStages:
    """Image features and word vectors -> DeViSE -> embeddings."""

    chosen: Selection
    features: FeatureStages
    text: TextStages

    @cached_property
    def train(self) -> Stage:
        return Stage("train_devise", self._settings, incidental=_HOW, sources=self._vectors)

    @cached_property
    def embed(self) -> Stage:
        return Stage("embed_devise", self._settings, incidental=_HOW, sources=self._vectors)

    def _settings(self, wildcards: Wildcards) -> TrainDeviseSettings:
        config = self.chosen.config
        devise = config.devise[wildcards.devise]
        dimension = config.word_vectors[devise.word_vectors].dimension
        seed = devise.seed_in(config.seed)
        return TrainDeviseSettings(devise=devise, dimension=dimension, embed=config.embed, seed=seed)

    def _vectors(self, wildcards: Wildcards) -> dict[str, Path]:
        return self.text.vector_files(self.chosen.config.devise[wildcards.devise].word_vectors)

    def vectors_of(self, wildcards: Wildcards) -> str:
        """What ``--vectors`` is given."""
        return str(next(iter(self._vectors(wildcards).values())))

    def features_of(self, wildcards: Wildcards) -> str:
        return self.features.sealed_of(self.chosen.config.devise[wildcards.devise].backbone)

    def gpus(self, wildcards: Wildcards) -> int:
        return int(self.chosen.config.devise[wildcards.devise].device != "cpu")
