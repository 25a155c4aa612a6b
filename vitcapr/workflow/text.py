"""The stages that turn captions into numbers, and the word vectors they start from."""

from dataclasses import dataclass
from pathlib import Path

from vitcapr.config.dataset import find_data
from vitcapr.workflow.rule import Wildcards
from vitcapr.workflow.selection import Selection


@dataclass(frozen=True)
class TextStages:
    """Captions -> vocabulary, word numbers and initial word vectors."""

    chosen: Selection

    def files_of(self, wildcards: Wildcards) -> dict[str, Path]:
        """The file of word vectors that the job reads, by its key."""
        return self.vector_files(wildcards.vectors)

    def vector_files(self, name: str) -> dict[str, Path]:
        return {f"word_vectors.{name}.path": find_data(self.chosen.config.word_vectors[name].path)}

    def vectors_named(self, name: str | None) -> list[str]:
        """The stage's output for a model that starts from ``name``; nothing for one that starts from random numbers."""
        return [] if name is None else [f"{self.chosen.root}/text/word_vectors/{name}/vectors.npy"]
