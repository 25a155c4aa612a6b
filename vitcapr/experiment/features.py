"""The files of feature extraction, for each backbone."""

from dataclasses import dataclass
from pathlib import Path

from vitcapr.config.features import TRAINED
from vitcapr.config.paths import ADOPTED
from vitcapr.experiment.selection import Selection
from vitcapr.formats.kinds import BackboneFolder
from vitcapr.pipeline.paths import find_backbone, find_store, stores_root
from vitcapr.pipeline.rule import Wildcards


@dataclass(frozen=True)
class FeatureStages:
    """Pictures -> sealed feature stores."""

    selection: Selection
    results: Path

    @property
    def sealed(self) -> list[str]:
        return [self.sealed_of(name) for name in self.selection.backbones]

    def sealed_of(self, backbone: str) -> str:
        return f"{self.selection.root}/features/{backbone}/manifest.json"

    def is_adopted(self, backbone: str) -> bool:
        return self.selection.config.backbones[backbone].is_adopted

    @property
    def adopted(self) -> list[str]:
        return [name for name in self.selection.backbones if self.is_adopted(name)]

    @property
    def extracted(self) -> list[str]:
        return [name for name in self.selection.backbones if not self.is_adopted(name)]

    def adopted_store(self, wildcards: Wildcards) -> str:
        """The sealed manifest of the store that is a backbone's source."""
        return str(
            find_store(self.selection.config.backbones[wildcards.backbone].source.removeprefix(ADOPTED), self.results)
        )

    def backbone_files(self, name: str) -> dict[str, Path]:
        """The folder of a local backbone; empty for a hub id, whose revision is in the settings."""
        if self.selection.is_trained(name):
            return {}
        folder = find_backbone(self.selection.config.backbones[name].source)
        return {f"backbones.{name}.source": folder} if folder.is_dir() else {}

    def files_of(self, wildcards: Wildcards) -> dict[str, Path]:
        return self.backbone_files(wildcards.backbone)

    def trained_backbone(self, name: str) -> list[str]:
        """The files of the backbone that the workflow trains; empty for other backbones."""
        if not self.selection.is_trained(name):
            return []
        return [f"{self.selection.root}/backbones/{TRAINED}/{file}" for file in BackboneFolder.files]

    def trained_backbone_of(self, wildcards: Wildcards) -> list[str]:
        return self.trained_backbone(wildcards.backbone)

    def source_of(self, name: str) -> str:
        """A hub id or a folder."""
        if self.selection.is_trained(name):
            return f"{self.selection.root}/backbones/{TRAINED}"
        return self.selection.config.backbones[name].source

    def stores(self, _: Wildcards) -> str:
        """The folder of all stores."""
        return str(stores_root(self.results))

    def parts_of(self, wildcards: Wildcards) -> list[str]:
        tasks = range(self.selection.config.features.tasks)
        return [f"{self.selection.root}/features/{wildcards.backbone}/parts/{task}.json" for task in tasks]
