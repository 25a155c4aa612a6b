"""The files of the stages that train captioners and generate captions."""

from dataclasses import dataclass

from vitcapr.experiment.features import FeatureStages
from vitcapr.experiment.selection import Selection
from vitcapr.experiment.text import TextStages
from vitcapr.pipeline.rule import Wildcards


@dataclass(frozen=True)
class CaptioningStages:
    """Features and word numbers -> captioners -> captions."""

    selection: Selection
    features: FeatureStages
    text: TextStages

    @property
    def ways(self) -> list[str]:
        """All sources of captions: decodings, then rerankings."""
        return [*self.selection.decodings, *self.selection.rerankings]

    @property
    def attentive_captioners(self) -> list[str]:
        return [name for name in self.selection.captioners if self.selection.config.captioners[name].attends]

    @property
    def attentive_decodings(self) -> list[str]:
        """The decodings of ``run`` that store attention."""
        return [name for name in self.selection.decodings if self.selection.config.decodings[name].attention]

    def backbone_of(self, wildcards: Wildcards) -> str:
        return self.selection.config.captioners[wildcards.captioner].backbone

    def features_of(self, wildcards: Wildcards) -> str:
        """The sealed image features of a captioner."""
        return self.features.sealed_of(self.backbone_of(wildcards))

    def word_vectors_of(self, wildcards: Wildcards) -> list[str]:
        return self.text.vectors_named(self.selection.config.captioners[wildcards.captioner].word_vectors)

    def start_of(self, wildcards: Wildcards) -> list[str]:
        """The weights and the card of the captioner that training starts from, if it starts from one."""
        name = self.selection.config.captioners[wildcards.captioner].start_from
        files = ("best.safetensors", "card.json")
        return [] if name is None else [f"{self.selection.root}/captioners/{name}/{file}" for file in files]

    def captions_of_split(self, wildcards: Wildcards) -> list[str]:
        """The captions of every captioner, decoding and reranking for one split."""
        return list(self._by_name(wildcards.split).values())

    def names_of_captions(self, wildcards: Wildcards) -> list[str]:
        """The names of these captions, in the same order."""
        return list(self._by_name(wildcards.split))

    @property
    def captioned_splits(self) -> list[dict[str, str]]:
        """The splits that are captioned, as wildcards."""
        return [{"split": split} for split in self.selection.splits if self.selection.captioners]

    def _by_name(self, split: str) -> dict[str, str]:
        return {
            f"{captioner}/{decoding}": f"{self.selection.root}/captions/{captioner}/{decoding}/{split}/captions.json"
            for captioner in self.selection.representatives(self.selection.captioners, "captioners")
            for decoding in self.ways
        }

    def files(self, folder: str, *files: str) -> list[str]:
        """``files`` under ``folder`` for every captioner, decoding or reranking, and split."""
        return self._files(self.selection.captioners, self.ways, folder, files)

    def attentive_files(self, folder: str, *files: str) -> list[str]:
        """Like :meth:`files`, for captions with stored attention."""
        return self._files(self.attentive_captioners, self.attentive_decodings, folder, files)

    @property
    def attended(self) -> list[dict[str, str]]:
        """The captions with stored attention, as wildcards."""
        return [
            {"captioner": captioner, "decoding": decoding, "split": split}
            for captioner in self.attentive_captioners
            for decoding in self.attentive_decodings
            for split in self.selection.splits
        ]

    def _files(self, captioners: list[str], decodings: list[str], folder: str, files: tuple[str, ...]) -> list[str]:
        return [
            f"{self.selection.root}/{folder}/{captioner}/{decoding}/{split}/{file}"
            for captioner in captioners
            for decoding in decodings
            for split in self.selection.splits
            for file in files
        ]
