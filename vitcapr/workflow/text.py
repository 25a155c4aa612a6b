"""The stages that turn captions into numbers, and the word vectors they start from."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitcapr.config.text import WordVectorsSettings
from vitcapr.workflow.machine import find_data
from vitcapr.workflow.selection import Selection
from vitcapr.workflow.stage import Stage, Wildcards


@dataclass(frozen=True)
class TextStages:
    """Captions -> vocabulary, word numbers and initial word vectors."""

    chosen: Selection

    @cached_property
    def word_vectors(self) -> Stage:
        return Stage(
            "word_vectors",
            lambda w: WordVectorsSettings(word_vectors=self.chosen.config.word_vectors[w.vectors]),
            incidental=frozenset({"word_vectors.path"}),
            sources=lambda w: self.vector_files(w.vectors),
        )

    def vector_file(self, wildcards: Wildcards) -> str:
        return str(find_data(self.chosen.config.word_vectors[wildcards.vectors].path))

    def vector_files(self, name: str) -> dict[str, Path]:
        return {f"word_vectors.{name}.path": find_data(self.chosen.config.word_vectors[name].path)}

    def vectors_named(self, name: str | None) -> list[str]:
        """The stage's output for a model that starts from ``name``; nothing for one that starts from random numbers."""
        return [] if name is None else [f"{self.chosen.root}/text/word_vectors/{name}/vectors.npy"]
