"""The definition that a job is about."""

from dataclasses import dataclass
from typing import Any

from vitcapr.config.captioner import CaptionerConfig
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.finetuned_dual_encoder import FinetunedDualEncoderConfig
from vitcapr.config.retriever import RetrieverConfig


@dataclass(frozen=True)
class Definitions:
    """Looks up definitions by the wildcards of a job."""

    config: ExperimentConfig

    def captioner(self, job: Any) -> CaptionerConfig:
        return self.config.captioners[job.captioner]

    def retriever(self, job: Any) -> RetrieverConfig:
        return self.config.retrievers[job.retriever]

    def reranker(self, job: Any) -> RetrieverConfig:
        """The retriever of a reranking that has one."""
        return self.config.retrievers[str(self.config.rerankings[job.reranking].retriever)]

    def dual_encoder(self, job: Any) -> FinetunedDualEncoderConfig:
        return self.config.finetuned_dual_encoders[job.finetuned]
