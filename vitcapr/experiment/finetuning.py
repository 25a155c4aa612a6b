"""Fine-tuned dual encoders: their tokenizers, training on decoded pictures, embeddings by language, and scores."""

from dataclasses import dataclass
from pathlib import Path

from vitcapr.config.finetuned_dual_encoder import FinetunedDualEncoderConfig
from vitcapr.experiment.features import FeatureStages
from vitcapr.experiment.names import unique
from vitcapr.experiment.selection import Selection
from vitcapr.pipeline.paths import find_backbone
from vitcapr.pipeline.rule import Wildcards


@dataclass(frozen=True)
class FinetuningStages:
    """Pixels and captions -> fine-tuned dual encoders -> embeddings."""

    selection: Selection
    features: FeatureStages

    @property
    def needed(self) -> list[str]:
        """The fine-tuned dual encoders that are scored, and those whose loss curves are drawn."""
        return unique(
            [
                *self.selection.finetuned_dual_encoders,
                *(name for names in self.selection.config.run.loss_curves.values() for name in names),
            ]
        )

    @property
    def languages(self) -> list[str]:
        """Those that fine-tuned dual encoders read."""
        return unique(
            language
            for name in self.selection.finetuned_dual_encoders
            for language in self.selection.config.finetuned_dual_encoders[name].languages
        )

    @property
    def tokenizers(self) -> list[str]:
        """The tokenizers of the fine-tuned dual encoders to train."""
        texts = (
            text for name in self.needed for text in self.selection.config.finetuned_dual_encoders[name].text.values()
        )
        return unique(text.tokenizer for text in texts if text.tokenizer is not None)

    @property
    def pixel_backbones(self) -> list[str]:
        """The backbones to fine-tune on decoded pictures."""
        return unique(self.selection.config.finetuned_dual_encoders[name].image.backbone for name in self.needed)

    def _config(self, wildcards: Wildcards) -> FinetunedDualEncoderConfig:
        return self.selection.config.finetuned_dual_encoders[wildcards.finetuned]

    def checkpoints(self, wildcards: Wildcards) -> dict[str, Path]:
        """The folders of checkpoints that lie on this machine."""
        finetuned = self._config(wildcards)
        found = self.features.backbone_files(finetuned.image.backbone)
        for name, text in finetuned.text.items():
            if text.source is not None and (folder := find_backbone(text.source)).is_dir():
                found[f"finetuned_dual_encoders.{wildcards.finetuned}.text.{name}.source"] = folder
        return found

    def pixels_of(self, wildcards: Wildcards) -> str:
        """The sealed pixels that a fine-tuned dual encoder is trained on."""
        return f"{self.selection.root}/pixels/{self._config(wildcards).image.backbone}/manifest.json"

    def trained_backbone_of(self, wildcards: Wildcards) -> list[str]:
        return self.features.trained_backbone(self._config(wildcards).image.backbone)

    def source_of(self, wildcards: Wildcards) -> str:
        """The hub id or folder of the image tower's checkpoint."""
        return self.features.source_of(self._config(wildcards).image.backbone)

    def tokenizers_of(self, wildcards: Wildcards) -> list[str]:
        return list(self._tokenizers(wildcards).values())

    def names_of_tokenizers(self, wildcards: Wildcards) -> list[str]:
        return list(self._tokenizers(wildcards))

    def _tokenizers(self, wildcards: Wildcards) -> dict[str, str]:
        named = unique(text.tokenizer for text in self._config(wildcards).text.values() if text.tokenizer is not None)
        return {name: f"{self.selection.root}/tokenizers/{name}/tokenizer.json" for name in named}

    def tags_of(self, wildcards: Wildcards) -> list[str]:
        """The parts of speech, for a fine-tuned dual encoder that adds them."""
        wanted = any(text.tags for text in self._config(wildcards).text.values())
        return [f"{self.selection.root}/text/tags/tags.npz"] if wanted else []

    def pairs_of(self, wildcards: Wildcards) -> list[str]:
        """The texts before cleaning, whose punctuation divides captions into segments."""
        wanted = any(text.segments for text in self._config(wildcards).text.values())
        cleaned = self.selection.config.data.dataset == "pairs"
        return [f"{self.selection.root}/data/pairs.parquet"] if wanted and cleaned else []

    def untrained_of(self, wildcards: Wildcards) -> list[str]:
        """The embeddings of a model before training, where it is a fine-tuned dual encoder."""
        if wildcards.embedded not in self.selection.finetuned_dual_encoders:
            return []
        return [self.selection.embeddings(f"untrained/{wildcards.embedded}", wildcards.split)]

    @property
    def files(self) -> list[str]:
        """Scores of retrieval across languages."""
        root, config = self.selection.root, self.selection.config
        return [
            f"{root}/metrics/languages/{name}/{split}/metrics.json"
            for name in self.selection.finetuned_dual_encoders
            for split in self.selection.splits
            if len(config.finetuned_dual_encoders[name].languages) > 1
        ]
