"""The stages of pairs in two languages, and of models that are trained through their backbone."""

from dataclasses import dataclass
from functools import cached_property

from vitcapr.config.pixels import ExtractPixelsSettings
from vitcapr.config.tags import TagSettings
from vitcapr.workflow.features import FeatureStages
from vitcapr.workflow.selection import Selection
from vitcapr.workflow.stage import Stage, Wildcards


@dataclass(frozen=True)
class PairStages:
    """Pictures -> decoded pixels; pairs -> tags and tables."""

    chosen: Selection
    features: FeatureStages

    @cached_property
    def extract_pixels(self) -> Stage:
        return Stage("extract_pixels", self._pixel_settings, sources=lambda w: self.features.backbone_files(w.backbone))

    @cached_property
    def tag_words(self) -> Stage:
        return Stage("tag_words", lambda _: TagSettings(tags=self.chosen.config.tags))

    @cached_property
    def claims(self) -> Stage:
        return Stage("pair_claims")

    @property
    def files(self) -> list[str]:
        """What is made of pairs whatever is trained on them, and tags where they are wanted for themselves."""
        root = self.chosen.root
        tags = [f"{root}/text/tags/tags.npz"] if self.chosen.config.run.tags else []
        if self.chosen.config.data.dataset != "pairs":
            return tags
        return [*tags, f"{root}/tables/claims.md"]

    def _pixel_settings(self, wildcards: Wildcards) -> ExtractPixelsSettings:
        config = self.chosen.config
        return ExtractPixelsSettings(backbone=config.backbones[wildcards.backbone], pixels=config.pixels)
