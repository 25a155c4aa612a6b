"""The feature stores of an experiment, and the backbones that it trains."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitcapr.config.base import ADOPTED, find_backbone
from vitcapr.config.features import TRAINED, BackboneConfig, TextEncoderConfig
from vitcapr.encoders.kinds import rolls_out
from vitcapr.experiment.models import Part
from vitcapr.experiment.stored import Stored, stored_by
from vitcapr.formats.kinds import BACKBONE_FILES
from vitcapr.pipeline.paths import RESULTS, find_store, stores_root
from vitcapr.pipeline.rule import Wildcards


@dataclass(frozen=True)
class Features(Part):
    """Features of images and captions.

    Attributes:
        results: the folder of all results.
    """

    results: Path = RESULTS

    @cached_property
    def stored(self) -> dict[str, Stored]:
        """What the store of each backbone holds."""
        return {name: stored_by(self.config, name, self.results) for name in self.models.backbones}

    def sealed(self, backbone: str) -> str:
        """The sealed image features of a backbone."""
        return f"{self.root}/features/{backbone}/manifest.json"

    def sealed_views(self, backbones: Iterable[str]) -> list[str]:
        return list(map(self.sealed, backbones))

    def text_features(self, encoder: str | None) -> list[str]:
        return [] if encoder is None else [f"{self.root}/text_features/{encoder}/manifest.json"]

    def parts(self, wildcards: Wildcards) -> list[str]:
        """The parts of an extraction that several jobs share."""
        tasks = range(self.config.features.tasks)
        return [f"{self.root}/features/{wildcards.backbone}/parts/{task}.json" for task in tasks]

    def adopted_store(self, encoder: BackboneConfig | TextEncoderConfig) -> str:
        """The sealed manifest of the store that is the source of an encoder."""
        return str(find_store(encoder.source.removeprefix(ADOPTED), self.results))

    def stores(self, _: Wildcards) -> str:
        """The folder of all stores."""
        return str(stores_root(self.results))

    def trained_backbone(self, name: str) -> list[str]:
        """The files of a backbone, if the experiment trains it."""
        trained = self.models.is_trained(name)
        return [f"{self.root}/backbones/{TRAINED}/{file}" for file in BACKBONE_FILES] if trained else []

    def backbone_source(self, name: str) -> str:
        """A hub id or a folder."""
        return (
            f"{self.root}/backbones/{TRAINED}" if self.models.is_trained(name) else self.config.backbones[name].source
        )

    def rolls_out(self, backbone: str) -> bool:
        """Whether the attention of a backbone can be rolled out on the stored grid: not that of a store, of a plugin,
        of a network without CLS, or of pooled patches."""
        config = self.config.backbones[backbone]
        known = rolls_out(find_backbone(config.source), config.kind)
        return known and not config.is_adopted and config.patches == "all"

    def clip_features(self, _: Wildcards) -> list[str]:
        """The image features of CLIPScore."""
        clip = self.config.metrics.clip_score
        return [] if clip is None else [self.sealed(clip.backbone)]

    @property
    def sealed_stores(self) -> dict[str, str]:
        """The sealed feature stores of images and captions, by their folders below the experiment's."""
        folders = [f"features/{name}" for name in self.models.backbones]
        folders += [f"text_features/{name}" for name in self.models.text_encoders]
        return {folder: f"{self.root}/{folder}/manifest.json" for folder in folders}
