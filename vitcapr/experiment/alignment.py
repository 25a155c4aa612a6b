"""The files of comparisons of alignments."""

from dataclasses import dataclass

from vitcapr.experiment.features import FeatureStages
from vitcapr.experiment.selection import Selection
from vitcapr.pipeline.rule import Wildcards


@dataclass(frozen=True)
class AlignmentStages:
    """Features of images and of captions -> scores of alignments."""

    selection: Selection
    features: FeatureStages

    def features_of(self, wildcards: Wildcards) -> str:
        """The sealed image features of an alignment."""
        return self.features.sealed_of(self.selection.config.alignments[wildcards.alignment].image)

    def augmented_views_of(self, wildcards: Wildcards) -> list[str]:
        """The sealed features of its further views."""
        return [self.features.sealed_of(name) for name in self.selection.config.alignments[wildcards.alignment].views]

    def text_features_of(self, wildcards: Wildcards) -> str:
        """The sealed text features of an alignment."""
        encoder = self.selection.config.alignments[wildcards.alignment].text
        return f"{self.selection.root}/text_features/{encoder}/manifest.json"

    @property
    def files(self) -> list[str]:
        """The tables of the alignments of ``run``."""
        return [f"{self.selection.root}/alignments/{name}/tables.md" for name in self.selection.alignments]
