"""DeViSE: features mapped linearly into a space of word vectors, as a baseline."""

from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section
from vitcapr.config.retriever import EmbedConfig
from vitcapr.config.training import TrainedConfig


class DeviseConfig(TrainedConfig):
    """Frome et al. 2013: image features, a linear map, and the mean word vector of a caption, which is not trained."""

    backbone: str
    """The name of an entry of backbones, whose CLS features are mapped."""
    word_vectors: str
    """The name of an entry of word_vectors; a caption is the mean of its words that are in the file."""
    language: str = "en"
    """Of the captions: that of the word vectors."""
    margin: float = Field(0.1, gt=0)
    """Of the hinge rank loss (the paper: 0.1)."""
    epochs: int = Field(20, ge=1)
    batch_images: int = Field(100, ge=2)
    captions_per_image: int | None = Field(1, ge=1)
    """Captions drawn at random of each image; null takes all."""
    learning_rate: float = Field(0.001, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    device: Literal["auto", "cpu", "cuda"] = "auto"


class TrainDeviseSettings(Section):
    """What the stages ``train_devise`` and ``embed_devise`` read."""

    devise: DeviseConfig
    dimension: int = Field(ge=1)
    """Of the word vectors."""
    embed: EmbedConfig = EmbedConfig()
    seed: int = Field(0, ge=0)
    """The experiment's; one of DeViSE's own comes before it."""
