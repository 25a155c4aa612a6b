"""The stages of cross-attention rerankers: trained against a retriever's confusions, weighed, and scored."""

from dataclasses import dataclass
from functools import cached_property

from vitcapr.config.cross_encoder import (
    CrossEncoderConfig,
    CrossEncodeSettings,
    TrainCrossEncoderSettings,
    WeighCrossEncoderSettings,
)
from vitcapr.workflow.features import FeatureStages
from vitcapr.workflow.selection import VALIDATION, Selection, options
from vitcapr.workflow.stage import Stage, Wildcards


@dataclass(frozen=True)
class CrossEncodingStages:
    """Features, captions and a retriever's embeddings -> rerankers -> ranks."""

    chosen: Selection
    features: FeatureStages

    @cached_property
    def train(self) -> Stage:
        return Stage(
            "train_cross_encoder",
            lambda w: TrainCrossEncoderSettings(
                cross_encoder=self._config(w), seed=self._config(w).seed_in(self.chosen.config.seed)
            ),
            incidental=frozenset(
                {
                    "cross_encoder.batch",
                    "cross_encoder.grid_steps",
                    "cross_encoder.top",
                    "cross_encoder.training.device",
                    "cross_encoder.training.save_every_steps",
                }
            ),
        )

    @cached_property
    def match(self) -> Stage:
        return Stage("cross_encode", self._match_settings, incidental=frozenset({"batch", "device"}))

    @cached_property
    def weigh(self) -> Stage:
        return Stage("weigh_cross_encoder", lambda w: WeighCrossEncoderSettings(grid_steps=self._config(w).grid_steps))

    def _match_settings(self, wildcards: Wildcards) -> CrossEncodeSettings:
        config = self._config(wildcards)
        return CrossEncodeSettings(top=config.top, batch=config.batch, device=config.training.device)

    def _config(self, wildcards: Wildcards) -> CrossEncoderConfig:
        return self.chosen.config.cross_encoders[wildcards.cross]

    def features_of(self, wildcards: Wildcards) -> str:
        """The sealed features of the backbone of its retriever."""
        retriever = self.chosen.config.retrievers[self._config(wildcards).retriever]
        return self.features.sealed_of(retriever.backbone)

    def text_features_of(self, wildcards: Wildcards) -> list[str]:
        """The sealed text features that it reads, if it reads any."""
        encoder = self._config(wildcards).text_encoder
        return [] if encoder is None else [f"{self.chosen.root}/text_features/{encoder}/manifest.json"]

    def text_features_option(self, wildcards: Wildcards) -> str:
        return options("text-features", self.text_features_of(wildcards))

    def train_embeddings_of(self, wildcards: Wildcards) -> str:
        return self._embeddings(wildcards, "train")

    def validation_embeddings_of(self, wildcards: Wildcards) -> str:
        return self._embeddings(wildcards, VALIDATION)

    def embeddings_of(self, wildcards: Wildcards) -> str:
        return self._embeddings(wildcards, wildcards.split)

    def _embeddings(self, wildcards: Wildcards, split: str) -> str:
        return self.chosen.embeddings(self._config(wildcards).retriever, split)

    def ranks_of(self, wildcards: Wildcards) -> str:
        """The ranks of its retriever on a split."""
        return self._scored(wildcards, wildcards.split, "ranks.npz")

    def metrics_of(self, wildcards: Wildcards) -> str:
        return self._scored(wildcards, wildcards.split, "metrics.json")

    def validation_ranks_of(self, wildcards: Wildcards) -> str:
        return self._scored(wildcards, VALIDATION, "ranks.npz")

    def _scored(self, wildcards: Wildcards, split: str, file: str) -> str:
        return f"{self.chosen.root}/metrics/retrieval/{self._config(wildcards).retriever}/{split}/{file}"

    def gpus(self, wildcards: Wildcards) -> int:
        return int(self._config(wildcards).training.device != "cpu")
