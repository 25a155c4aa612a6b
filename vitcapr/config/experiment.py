"""The whole configuration of an experiment: what config.yaml holds."""

from typing import Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section
from vitcapr.config.captioner import CaptionerConfig
from vitcapr.config.data import DataConfig
from vitcapr.config.decoding import DecodingConfig
from vitcapr.config.features import BackboneConfig, FeaturesConfig, TrainedBackboneConfig
from vitcapr.config.figures import FiguresConfig
from vitcapr.config.metrics import MetricsConfig
from vitcapr.config.text import TextConfig, WordVectorsConfig


class RunConfig(Section):
    """What is made of the definitions beside it."""

    captioners: list[str] = Field(["attention"], min_length=1)
    decodings: list[str] = Field(["greedy", "beam"], min_length=1)
    splits: list[Literal["validation", "test"]] = ["test"]


class ExperimentConfig(Section):
    """An experiment. Named definitions (backbones, captioners, ...) may be more than ``run`` asks for."""

    experiment: str = Field("demo", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
    """Its name; everything it computes is under results/<experiment>/."""
    seed: int = Field(0, ge=0)
    """Seed of all training."""
    data: DataConfig = DataConfig()
    text: TextConfig = TextConfig()
    word_vectors: dict[str, WordVectorsConfig] = {}
    backbones: dict[str, BackboneConfig] = {"vit": BackboneConfig(source="trained")}
    trained_backbone: TrainedBackboneConfig = TrainedBackboneConfig()
    features: FeaturesConfig = FeaturesConfig()
    captioners: dict[str, CaptionerConfig] = {"attention": CaptionerConfig(backbone="vit")}
    decodings: dict[str, DecodingConfig] = {"greedy": DecodingConfig(beam_size=1), "beam": DecodingConfig()}
    metrics: MetricsConfig = MetricsConfig()
    figures: FiguresConfig = FiguresConfig()
    run: RunConfig = RunConfig()

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for key, wanted, defined in (
            ("run.captioners", self.run.captioners, self.captioners),
            ("run.decodings", self.run.decodings, self.decodings),
        ):
            for name in wanted:
                if name not in defined:
                    raise ValueError(f"{key} asks for '{name}', which is not among {sorted(defined)}")
        for name in self.run.captioners:
            captioner = self.captioners[name]
            if captioner.backbone not in self.backbones:
                raise ValueError(
                    f"captioners.{name}.backbone '{captioner.backbone}' is not among {sorted(self.backbones)}"
                )
            if captioner.word_vectors is not None and captioner.word_vectors not in self.word_vectors:
                known = sorted(self.word_vectors)
                raise ValueError(f"captioners.{name}.word_vectors '{captioner.word_vectors}' is not among {known}")
        if self.features.chunk % self.features.batch:
            raise ValueError(
                f"features.batch {self.features.batch} does not divide features.chunk {self.features.chunk}"
            )
        return self
