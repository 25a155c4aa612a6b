"""What an experiment asks for by name: the parts of its configuration that are really used, and where they are kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vitcapr.config.experiment import ExperimentConfig
from vitcapr.workflow.stage import RESULTS

TRAINED = "trained"


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
    def decodings(self) -> list[str]:
        return unique(self.config.run.decodings)

    @property
    def splits(self) -> list[str]:
        return unique(self.config.run.splits)

    @property
    def backbones(self) -> list[str]:
        """Those that a wanted captioner looks through."""
        return unique(self.config.captioners[name].backbone for name in self.captioners)

    @property
    def word_vectors(self) -> list[str]:
        """Those that a wanted captioner starts from."""
        wanted = (self.config.captioners[name].word_vectors for name in self.captioners)
        return unique(name for name in wanted if name is not None)

    @property
    def attentive_captioners(self) -> list[str]:
        return [name for name in self.captioners if self.config.captioners[name].architecture == "patch_attention"]

    @property
    def attentive_decodings(self) -> list[str]:
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
    return "|".join(names) if names else "(?!)"


def options(flag: str, values: Iterable[str]) -> str:
    """``--flag value`` for each value, as a command line takes them."""
    return " ".join(f"--{flag} {value}" for value in values)
