"""What an experiment asks for by name: the parts of its configuration that are really used, and where they are kept."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vitcapr.config.experiment import ExperimentConfig
from vitcapr.workflow.stage import RESULTS

TRAINED = "trained"
TRAIN, VALIDATION = "train", "validation"
"""The split on which everything is tuned."""


@dataclass(frozen=True)
class Selection:
    """The names that the rules' wildcards take."""

    config: ExperimentConfig

    @property
    def name(self) -> str:
        return self.config.experiment

    @property
    def root(self) -> str:
        return f"{RESULTS}/{self.name}"

    @property
    def captioners(self) -> list[str]:
        return unique(self.config.run.captioners)

    @property
    def trained_captioners(self) -> list[str]:
        """Those that are shown, and those that they start from, which come first."""
        return unique(name for wanted in self.captioners for name in self.config.line_of(wanted))

    @property
    def decodings(self) -> list[str]:
        """Those whose captions are shown and scored."""
        return unique(self.config.run.decodings)

    @property
    def rerankings(self) -> list[str]:
        return unique(self.config.run.rerankings)

    @property
    def tuned_rerankings(self) -> list[str]:
        """Those whose weight is chosen on the validation split."""
        return [name for name in self.rerankings if self.config.rerankings[name].by == "retriever"]

    @property
    def oracles(self) -> list[str]:
        return [name for name in self.rerankings if self.config.rerankings[name].by == "oracle"]

    @property
    def needed_decodings(self) -> list[str]:
        """Those that are shown, and those that are reranked."""
        return unique([*self.decodings, *(self.config.rerankings[name].decoding for name in self.rerankings)])

    @property
    def ways(self) -> list[str]:
        """All that captions come from: decodings, then rerankings."""
        return [*self.decodings, *self.rerankings]

    @property
    def retrievers(self) -> list[str]:
        """Those that are shown and scored."""
        return unique(self.config.run.retrievers)

    @property
    def cross_encoders(self) -> list[str]:
        return unique(self.config.run.cross_encoders)

    @property
    def needed_retrievers(self) -> list[str]:
        """Those that are shown, and those that rerank."""
        reranking = (self.config.rerankings[name].retriever for name in self.rerankings)
        return unique([*self.retrievers, *(name for name in reranking if name is not None)])

    @property
    def splits(self) -> list[str]:
        return unique(self.config.run.splits)

    @property
    def needed_splits(self) -> list[str]:
        """Those that are shown, the one on which things are tuned, and the one that cross-encoders learn from."""
        tuned = [VALIDATION] if self.tuned_rerankings or self.cross_encoders else []
        return unique([*self.splits, *tuned, *([TRAIN] if self.cross_encoders else [])])

    @property
    def backbones(self) -> list[str]:
        """Those that a wanted model looks through."""
        captioners = (self.config.captioners[name].backbone for name in self.trained_captioners)
        retrievers = (self.config.retrievers[name].backbone for name in self.needed_retrievers)
        return unique([*captioners, *retrievers])

    @property
    def word_vectors(self) -> list[str]:
        """Those that a wanted model starts from."""
        captioners = (self.config.captioners[name].word_vectors for name in self.trained_captioners)
        retrievers = (self.config.retrievers[name].text.word_vectors for name in self.needed_retrievers)
        return unique(name for name in [*captioners, *retrievers] if name is not None)

    @property
    def text_encoders(self) -> list[str]:
        """Those whose features a wanted retriever reads."""
        wanted = (self.config.retrievers[name].text.encoder for name in self.needed_retrievers)
        crossed = (self.config.cross_encoders[name].text_encoder for name in self.cross_encoders)
        return unique(name for name in [*wanted, *crossed] if name is not None)

    @property
    def attentive_captioners(self) -> list[str]:
        return [name for name in self.captioners if self.config.captioners[name].architecture == "patch_attention"]

    @property
    def attentive_decodings(self) -> list[str]:
        """Of those that are shown."""
        return [name for name in self.decodings if self.config.decodings[name].attention]

    @property
    def has_objects(self) -> bool:
        """Whether the data set says which object is where."""
        return self.config.data.dataset == "scenes"

    def is_trained(self, backbone: str) -> bool:
        return self.config.backbones[backbone].source == TRAINED

    @property
    def trains_backbone(self) -> bool:
        return any(self.is_trained(name) for name in self.backbones)


def unique(names: Iterable[str]) -> list[str]:
    """Each name once, in the order of its first appearance."""
    return list(dict.fromkeys(names))


def one_of(names: Sequence[str]) -> str:
    """A wildcard's constraint: any of ``names``, or nothing at all when there is none."""
    return "|".join(map(re.escape, names)) if names else "(?!)"


def options(flag: str, values: Iterable[str]) -> str:
    """``--flag value`` for each value, as a command line takes them."""
    return " ".join(f"--{flag} {value}" for value in values)
