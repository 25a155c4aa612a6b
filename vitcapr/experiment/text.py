"""The files of the text stages: vocabulary, word numbers and word vectors."""

from dataclasses import dataclass
from pathlib import Path

from vitcapr.config.dataset import find_data
from vitcapr.experiment.names import unique
from vitcapr.experiment.selection import Selection
from vitcapr.pipeline.rule import Wildcards


@dataclass(frozen=True)
class TextStages:
    """Captions -> vocabulary, word numbers and initial word vectors."""

    selection: Selection

    @property
    def word_vectors(self) -> list[str]:
        """The word vectors that initialise a model to train."""
        captioners = (self.selection.config.captioners[name].word_vectors for name in self.selection.trained_captioners)
        retrievers = (
            self.selection.config.retrievers[name].text.initial_vectors for name in self.selection.needed_retrievers
        )
        return unique(name for name in [*captioners, *retrievers] if name is not None)

    def files_of(self, wildcards: Wildcards) -> dict[str, Path]:
        """The word-vector file that the job reads, by its configuration key."""
        return self.vector_files(wildcards.vectors)

    def vector_files(self, name: str) -> dict[str, Path]:
        return {f"word_vectors.{name}.path": find_data(self.selection.config.word_vectors[name].path)}

    def vectors_named(self, name: str | None) -> list[str]:
        """The initial embedding ``name``; empty if the embedding is initialised at random."""
        return [] if name is None else [f"{self.selection.root}/text/word_vectors/{name}/vectors.npy"]
