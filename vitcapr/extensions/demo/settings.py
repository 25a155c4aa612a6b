"""The demo: rendered scenes, the ViT that is trained on them, and what is known of every picture."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section
from vitcapr.config.data import DatasetConfig, DataSetName, PairsConfig
from vitcapr.experiment.paths import ROOT
from vitcapr.loader import Hooks


class ScenesConfig(DatasetConfig):
    """Data set of rendered pictures.

    Every second validation and test picture equals the one before it in its split, with one fact changed: a colour, a
    texture, the place or a side (dataset scenes only).
    """

    languages = ("en", "zh")
    has_objects = True
    limit_key = "images"
    stage = "data_scenes"

    images: int = Field(10000, ge=10)
    """Number of pictures. Picture i does not depend on this number."""
    size: int = Field(112, ge=32, le=512)
    """Width and height in pixels."""
    seed: int = Field(1, ge=0)
    """Seed of the data set; each seed gives different pictures."""
    validation: float = Field(0.05, gt=0, lt=0.5)
    """Share of pictures in the validation split."""
    test: float = Field(0.05, gt=0, lt=0.5)
    """Share of pictures in the test split."""

    @property
    def size_line(self) -> str:
        return f"{self.images:,} rendered images"

    def image_counts(self) -> Counter[str]:
        from vitcapr.extensions.demo.scene import split_of

        return Counter(split_of(number, self.validation, self.test)[0] for number in range(self.images))


class ScenePairsConfig(PairsConfig):
    source: Literal["table", "flickr8k", "scenes"] = "table"  # type: ignore[assignment]
    """table: your own table; flickr8k: data.flickr8k and its Chinese captions; scenes: rendered pictures
    (data.scenes)."""

    @property
    def stage(self) -> str:  # type: ignore[override]
        return "data_scene_pairs" if self.source == "scenes" else "data_pairs"


class Data(Section):
    dataset: Literal["scenes", DataSetName] = "scenes"
    scenes: ScenesConfig = ScenesConfig()
    pairs: ScenePairsConfig = ScenePairsConfig()


class TrainedBackboneConfig(Section):
    """The small ViT that the workflow trains on pictures whose objects are known."""

    patch_size: int = Field(14, ge=4)
    hidden_size: int = Field(128, ge=16)
    layers: int = Field(3, ge=1)
    heads: int = Field(4, ge=1)
    epochs: int = Field(5, ge=1)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.hidden_size % self.heads:
            raise ValueError(f"hidden_size {self.hidden_size} must be a multiple of heads, {self.heads}")
        return self


class Experiment(Section):
    trained_backbone: TrainedBackboneConfig = TrainedBackboneConfig()


GROUNDING = f"{ROOT}/metrics/{{captioner}}/{{decoding}}/{{split}}/grounding.json"
CLAIM_SCORES = f"{ROOT}/metrics/{{captioner}}/{{decoding}}/{{split}}/claims.json"


def _is_on(config: Any) -> bool:
    return bool(config.data.dataset == "scenes")


def _checks_claims(config: Any) -> list[bool]:
    return [_is_on(config) and config.text.language == "en"]


def _scores(experiment: Any) -> Iterator[str]:
    if _is_on(experiment.config):
        for one in experiment.captioning.attention:
            yield experiment.captioning.path(GROUNDING, **one)
    if any(_checks_claims(experiment.config)):
        yield from experiment.captioning.caption_files(CLAIM_SCORES)


def _trained_backbone(config: Any) -> list[tuple[str, Any]]:
    return [*config.trained_backbone.model_dump().items(), ("image_size", config.data.scenes.size)]


HOOKS = Hooks(scores=_scores, checks_claims=_checks_claims, trained_backbone=_trained_backbone)
