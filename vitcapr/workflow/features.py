"""The stages that look at the pictures, once for each backbone."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitcapr.config.features import ADOPTED, ExtractSettings, TrainBackboneSettings
from vitcapr.workflow.machine import find_backbone, find_store, stores_root
from vitcapr.workflow.selection import TRAINED, Selection
from vitcapr.workflow.stage import Stage, Wildcards


@dataclass(frozen=True)
class FeatureStages:
    """Pictures -> sealed feature stores."""

    chosen: Selection

    @property
    def sealed(self) -> list[str]:
        return [self.sealed_of(name) for name in self.chosen.backbones]

    def sealed_of(self, backbone: str) -> str:
        return f"{self.chosen.root}/features/{backbone}/manifest.json"

    @cached_property
    def train_backbone(self) -> Stage:
        return Stage("train_backbone", lambda _: TrainBackboneSettings(training=self.chosen.config.trained_backbone))

    @cached_property
    def extract(self) -> Stage:
        return Stage(
            "extract",
            self._extract_settings,
            incidental=frozenset({"features.tasks", "features.batch", "features.device"}),
            sources=lambda w: self.backbone_files(w.backbone),
        )

    @cached_property
    def seal(self) -> Stage:
        return Stage("seal")

    @cached_property
    def adopt(self) -> Stage:
        return Stage("adopt")

    def is_adopted(self, backbone: str) -> bool:
        return self.chosen.config.backbones[backbone].is_adopted

    @property
    def adopted(self) -> list[str]:
        return [name for name in self.chosen.backbones if self.is_adopted(name)]

    @property
    def extracted(self) -> list[str]:
        return [name for name in self.chosen.backbones if not self.is_adopted(name)]

    def adopted_store(self, wildcards: Wildcards) -> str:
        """The sealed manifest of the store that a backbone names."""
        return str(find_store(self.chosen.config.backbones[wildcards.backbone].source.removeprefix(ADOPTED)))

    def _extract_settings(self, wildcards: Wildcards) -> ExtractSettings:
        config = self.chosen.config
        return ExtractSettings(backbone=config.backbones[wildcards.backbone], features=config.features)

    def backbone_files(self, name: str) -> dict[str, Path]:
        """The folder of a backbone that lies on this machine; a hub id's revision stands in the settings."""
        if self.chosen.is_trained(name):
            return {}
        folder = find_backbone(self.chosen.config.backbones[name].source)
        return {f"backbones.{name}.source": folder} if folder.is_dir() else {}

    def trained_backbone(self, name: str) -> list[str]:
        """The weights that the DAG trains, for the backbones that are these."""
        if not self.chosen.is_trained(name):
            return []
        files = ("config.json", "model.safetensors", "preprocessor_config.json")
        return [f"{self.chosen.root}/backbones/{TRAINED}/{file}" for file in files]

    def trained_backbone_of(self, wildcards: Wildcards) -> list[str]:
        return self.trained_backbone(wildcards.backbone)

    def source_of(self, name: str) -> str:
        """A hub id or a folder."""
        if self.chosen.is_trained(name):
            return f"{self.chosen.root}/backbones/{TRAINED}"
        return self.chosen.config.backbones[name].source

    def backbone_source(self, wildcards: Wildcards) -> str:
        """What ``extract --source`` is given."""
        return self.source_of(wildcards.backbone)

    def task_count(self, wildcards: Wildcards, threads: int) -> int:  # noqa: ARG002
        """How many tasks fill a store; like :meth:`Stage.settings`, no reason to run again."""
        return self.chosen.config.features.tasks

    def stores(self, wildcards: Wildcards, threads: int) -> str:  # noqa: ARG002
        """What ``--stores`` is given; like :meth:`Stage.settings`, no reason to run again."""
        return str(stores_root())

    def parts_of(self, wildcards: Wildcards) -> list[str]:
        tasks = range(self.chosen.config.features.tasks)
        return [f"{self.chosen.root}/features/{wildcards.backbone}/parts/{task}.json" for task in tasks]

    def gpus(self, _: Wildcards) -> int:
        return int(self.chosen.config.features.device != "cpu")
