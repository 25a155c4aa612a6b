"""The files of reranking."""

from dataclasses import dataclass

from vitcapr.config.reranking import RerankingConfig
from vitcapr.experiment.features import FeatureStages
from vitcapr.experiment.selection import VALIDATION, Selection
from vitcapr.pipeline.rule import Wildcards


@dataclass(frozen=True)
class RerankingStages:
    """Candidates and a retriever -> captions."""

    selection: Selection
    features: FeatureStages

    @property
    def by_retriever(self) -> list[str]:
        """All but the oracles."""
        return [name for name in self.selection.rerankings if self.selection.config.rerankings[name].by == "retriever"]

    @property
    def oracles(self) -> list[str]:
        return [name for name in self.selection.rerankings if self.selection.config.rerankings[name].by == "oracle"]

    def _config(self, wildcards: Wildcards) -> RerankingConfig:
        return self.selection.config.rerankings[wildcards.reranking]

    def _captions(self, wildcards: Wildcards, split: str) -> str:
        decoding = self._config(wildcards).decoding
        return f"{self.selection.root}/captions/{wildcards.captioner}/{decoding}/{split}/captions.json"

    def candidates_of(self, wildcards: Wildcards) -> str:
        return self._captions(wildcards, wildcards.split)

    def validation_candidates_of(self, wildcards: Wildcards) -> str:
        return self._captions(wildcards, VALIDATION)

    def weight_of(self, wildcards: Wildcards) -> list[str]:
        """The weight chosen on the validation split; none where it is fixed."""
        folder = f"{self.selection.root}/reranking/{wildcards.captioner}/{wildcards.reranking}"
        return [f"{folder}/weight.json"] if self._config(wildcards).weight is None else []

    def retriever_of(self, wildcards: Wildcards) -> list[str]:
        folder = f"{self.selection.root}/retrievers/{self._config(wildcards).retriever}"
        return [f"{folder}/best.safetensors", f"{folder}/card.json"]

    def features_of(self, wildcards: Wildcards) -> str:
        """The sealed image features of the retriever."""
        name = self._config(wildcards).retriever
        return self.features.sealed_of(self.selection.config.retrievers[name].backbone) if name else ""

    def augmented_views_of(self, wildcards: Wildcards) -> list[str]:
        """The sealed features of the retriever's augmented views."""
        name = self._config(wildcards).retriever
        return (
            [self.features.sealed_of(view) for view in self.selection.config.retrievers[name].augmented_views]
            if name
            else []
        )
