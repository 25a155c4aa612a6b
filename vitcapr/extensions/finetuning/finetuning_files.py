"""The files that the jobs of fine-tuning read."""

from dataclasses import dataclass
from typing import Any

from vitcapr.experiment import paths
from vitcapr.experiment.models import Part
from vitcapr.experiment.rule import Wildcards
from vitcapr.experiment.stores import Features
from vitcapr.extensions.finetuning.config import FinetunedDualEncoderConfig
from vitcapr.extensions.finetuning.settings import PIXELS, SECTION, TAGS, TOKENIZER, needed


@dataclass(frozen=True)
class Finetuning(Part):
    """Dual encoders that are fine-tuned on decoded pixels. A list is empty where a model does not read such a file."""

    stores: Features

    def backbone(self, job: Wildcards) -> list[str]:
        """Return the files of the backbone to fine-tune, if the experiment trains it."""
        return self.stores.trained_backbone(self._model(job).image.backbone)

    def source(self, job: Wildcards) -> str:
        """Return the backbone to fine-tune: a hub id or a folder."""
        name = self._model(job).image.backbone
        trained = self.models.is_trained(name)
        return self.path(paths.TRAINED_BACKBONE) if trained else self.config.backbones[name].source

    def pixels(self, job: Wildcards) -> str:
        return self.path(PIXELS, backbone=self._model(job).image.backbone)

    def tokenizers(self, job: Wildcards) -> dict[str, str]:
        names = (tower.tokenizer for tower in self._model(job).text.values() if tower.tokenizer is not None)
        return {name: self.path(TOKENIZER, tokenizer=name) for name in names}

    def tags(self, job: Wildcards) -> list[str]:
        """Return the parts of speech, for a model that adds them."""
        return [self.path(TAGS)] if any(each.tags for each in self._model(job).text.values()) else []

    def pairs(self, job: Wildcards) -> list[str]:
        """Return the texts before cleaning, whose punctuation divides captions into segments."""
        segmented = any(tower.segments for tower in self._model(job).text.values())
        cleaned = self.config.data.dataset == "pairs"
        return [self.path(paths.PAIRS)] if segmented and cleaned else []

    def _model(self, job: Wildcards) -> FinetunedDualEncoderConfig:
        return needed(self.config)[job.finetuned]

    def loss_curves(self, pattern: str, job: Wildcards) -> dict[str, str]:
        """Return a file of each model whose losses a figure compares."""
        run: Any = self.config.run
        names = run.loss_curves[job.loss_curves]
        return {name: self.path(pattern, section=SECTION, model=name) for name in names}
