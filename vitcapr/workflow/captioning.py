"""The stages that learn to caption and that write captions."""

from dataclasses import dataclass

from vitcapr.workflow.features import FeatureStages
from vitcapr.workflow.rule import Wildcards
from vitcapr.workflow.selection import Selection
from vitcapr.workflow.text import TextStages


@dataclass(frozen=True)
class CaptioningStages:
    """Features and word numbers -> captioners -> captions."""

    chosen: Selection
    features: FeatureStages
    text: TextStages

    def backbone_of(self, wildcards: Wildcards) -> str:
        return self.chosen.config.captioners[wildcards.captioner].backbone

    def features_of(self, wildcards: Wildcards) -> str:
        """The sealed features that a captioner looks at."""
        return self.features.sealed_of(self.backbone_of(wildcards))

    def word_vectors_of(self, wildcards: Wildcards) -> list[str]:
        return self.text.vectors_named(self.chosen.config.captioners[wildcards.captioner].word_vectors)

    def start_of(self, wildcards: Wildcards) -> list[str]:
        """The weights and the card of the captioner that training starts from, if it starts from one."""
        name = self.chosen.config.captioners[wildcards.captioner].start_from
        files = ("best.safetensors", "card.json")
        return [] if name is None else [f"{self.chosen.root}/captioners/{name}/{file}" for file in files]

    def captions_of_split(self, wildcards: Wildcards) -> list[str]:
        """What every captioner and every decoding and reranking writes for one split."""
        return list(self._by_name(wildcards.split).values())

    def names_of_captions(self, wildcards: Wildcards) -> list[str]:
        """Their names, in the same order."""
        return list(self._by_name(wildcards.split))

    @property
    def captioned_splits(self) -> list[dict[str, str]]:
        """The splits that are captioned, as wildcards."""
        return [{"split": split} for split in self.chosen.splits if self.chosen.captioners]

    def _by_name(self, split: str) -> dict[str, str]:
        return {
            f"{captioner}/{decoding}": f"{self.chosen.root}/captions/{captioner}/{decoding}/{split}/captions.json"
            for captioner in self.chosen.drawn(self.chosen.captioners, "captioners")
            for decoding in self.chosen.ways
        }

    def files(self, folder: str, *files: str) -> list[str]:
        """``files`` under ``folder`` for every captioner, decoding or reranking, and split."""
        return self._files(self.chosen.captioners, self.chosen.ways, folder, files)

    def attentive_files(self, folder: str, *files: str) -> list[str]:
        """As :meth:`files`, for those that keep their attention."""
        return self._files(self.chosen.attentive_captioners, self.chosen.attentive_decodings, folder, files)

    @property
    def attended(self) -> list[dict[str, str]]:
        """The captions that keep their attention, as wildcards."""
        return [
            {"captioner": captioner, "decoding": decoding, "split": split}
            for captioner in self.chosen.attentive_captioners
            for decoding in self.chosen.attentive_decodings
            for split in self.chosen.splits
        ]

    def _files(self, captioners: list[str], decodings: list[str], folder: str, files: tuple[str, ...]) -> list[str]:
        return [
            f"{self.chosen.root}/{folder}/{captioner}/{decoding}/{split}/{file}"
            for captioner in captioners
            for decoding in decodings
            for split in self.chosen.splits
            for file in files
        ]
