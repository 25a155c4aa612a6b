"""The stages that put the candidates of a decoding in a new order."""

from dataclasses import dataclass
from functools import cached_property

from vitcapr.config.metrics import ScoreSettings
from vitcapr.config.reranking import RerankingConfig, RerankSettings, TuneRerankingSettings
from vitcapr.workflow.features import FeatureStages
from vitcapr.workflow.names import options
from vitcapr.workflow.selection import VALIDATION, Selection
from vitcapr.workflow.stage import Stage, Wildcards


@dataclass(frozen=True)
class RerankingStages:
    """Candidates and a retriever -> captions."""

    chosen: Selection
    features: FeatureStages

    @cached_property
    def tune(self) -> Stage:
        return Stage("tune_reranking", self._tune_settings, incidental=frozenset({"device", "metrics"}))

    @cached_property
    def rerank(self) -> Stage:
        return Stage(
            "rerank",
            lambda _: RerankSettings(device=self.chosen.config.embed.device),
            incidental=frozenset({"device"}),
        )

    @cached_property
    def oracle(self) -> Stage:
        config = self.chosen.config
        return Stage(
            "rerank_oracle",
            lambda _: ScoreSettings(metrics=config.metrics, language=config.text.language),
            incidental=frozenset({"metrics"}),
        )

    def _tune_settings(self, wildcards: Wildcards) -> TuneRerankingSettings:
        config = self.chosen.config
        return TuneRerankingSettings(
            weighing=self._config(wildcards).weighing,
            metrics=config.metrics,
            language=config.text.language,
            device=config.embed.device,
        )

    def _config(self, wildcards: Wildcards) -> RerankingConfig:
        return self.chosen.config.rerankings[wildcards.reranking]

    def _captions(self, wildcards: Wildcards, split: str) -> str:
        decoding = self._config(wildcards).decoding
        return f"{self.chosen.root}/captions/{wildcards.captioner}/{decoding}/{split}/captions.json"

    def candidates_of(self, wildcards: Wildcards) -> str:
        return self._captions(wildcards, wildcards.split)

    def validation_candidates_of(self, wildcards: Wildcards) -> str:
        return self._captions(wildcards, VALIDATION)

    def retriever_of(self, wildcards: Wildcards) -> list[str]:
        folder = f"{self.chosen.root}/retrievers/{self._config(wildcards).retriever}"
        return [f"{folder}/best.safetensors", f"{folder}/card.json"]

    def features_of(self, wildcards: Wildcards) -> str:
        """The sealed image features that the retriever looks at."""
        name = self._config(wildcards).retriever
        return self.features.sealed_of(self.chosen.config.retrievers[name].backbone) if name else ""

    def views_of(self, wildcards: Wildcards) -> list[str]:
        """The sealed features of the retriever's further views."""
        name = self._config(wildcards).retriever
        return [self.features.sealed_of(view) for view in self.chosen.config.retrievers[name].views] if name else []

    def views_option(self, wildcards: Wildcards) -> str:
        return options("view", self.views_of(wildcards))
