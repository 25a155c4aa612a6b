"""A cross-attention reranker of a retriever's first matches, and how it is trained."""

from typing import Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section
from vitcapr.config.training import PhaseConfig, TrainedConfig, TrainingConfig


class CrossPhaseConfig(PhaseConfig):
    epochs: int = Field(ge=1)
    """In an epoch every training image draws one group."""
    groups: int = Field(16, ge=1)
    """Groups in a batch."""
    group_images: int = Field(8, ge=2)
    """Images in a group, each with one caption: the one that draws it, and neighbours. All their pairs are scored."""
    learning_rate: float = Field(2e-3, gt=0)
    schedule: Literal["constant", "cosine", "linear"] = "cosine"
    warmup_steps: int = Field(50, ge=0)


class CrossTrainingConfig(TrainingConfig):
    phases: list[CrossPhaseConfig] = Field([CrossPhaseConfig(epochs=3)], min_length=1)
    neighbours: int = Field(50, ge=1)
    """A group is drawn from so many images that the retriever most likely takes for the one that draws it."""
    optimizer: Literal["adam", "adamw"] = "adamw"
    weight_decay: float = Field(0.05, ge=0)
    ema_decay: float = Field(0.99, ge=0, lt=1)

    @model_validator(mode="after")
    def _groups_have_enough_neighbours(self) -> Self:
        largest = max(phase.group_images for phase in self.phases)
        if largest > self.neighbours + 1:
            raise ValueError(f"a group of {largest} images needs {largest - 1} neighbours, not {self.neighbours}")
        return self


class CrossEncoderConfig(TrainedConfig):
    retriever: str
    """The name of an entry of retrievers, whose first matches are put in a new order; through its backbone it looks."""
    text_encoder: str | None = None
    """The name of an entry of text_encoders, whose feature of the caption is one more token; None reads words alone."""
    top: int = Field(100, ge=1)
    """How many of the first matches of every image and every caption are put in a new order."""
    pool: int = Field(2, ge=1)
    """Patches of squares of so many by so many are averaged before the words look at them."""
    width: int = Field(64, ge=1)
    heads: int = Field(4, ge=1)
    layers: int = Field(1, ge=1)
    """Of attention over the patches."""
    dropout: float = Field(0.1, ge=0, lt=1)
    max_length: int = Field(24, ge=3)
    """Longest caption in tokens, start and end included; longer ones are cut."""
    grid_steps: int = Field(20, ge=1)
    """Weights against the retriever's cosine are tried from 0 to 1 in so many steps, on validation."""
    batch: int = Field(256, ge=1)
    """Captions matched with an image at a time; re-runs nothing."""
    training: CrossTrainingConfig = CrossTrainingConfig()

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide a width of {self.width}")
        return self


class TrainCrossEncoderSettings(Section):
    """What the stage ``train_cross_encoder`` reads."""

    cross_encoder: CrossEncoderConfig
    seed: int = Field(0, ge=0)
    """The experiment's; one of the cross-encoder's own comes before it."""


class CrossEncodeSettings(Section):
    """What the stage ``cross_encode`` reads."""

    top: int = Field(100, ge=1)
    batch: int = Field(256, ge=1)
    device: Literal["auto", "cpu", "cuda"] = "auto"


class WeighCrossEncoderSettings(Section):
    """What the stage ``weigh_cross_encoder`` reads."""

    grid_steps: int = Field(20, ge=1)
