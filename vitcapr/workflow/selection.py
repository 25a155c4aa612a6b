"""What an experiment asks for by name: the parts of its configuration that are really used, and where they are kept."""

from collections.abc import Iterable
from dataclasses import dataclass

from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.scored import ScoredModels
from vitcapr.workflow.machine import RESULTS
from vitcapr.workflow.names import unique

TRAINED = "trained"
TRAIN, VALIDATION, TEST = "train", "validation", "test"
"""Everything is tuned on the second."""


@dataclass(frozen=True)
class Selection(ScoredModels):
    """The names that the rules' wildcards take."""

    config: ExperimentConfig

    @property
    def name(self) -> str:
        return self.config.experiment

    @property
    def root(self) -> str:
        return f"{RESULTS}/{self.name}"

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
    def needed_decodings(self) -> list[str]:
        """Those that are shown, and those that are reranked."""
        return unique([*self.decodings, *(self.config.rerankings[name].decoding for name in self.rerankings)])

    @property
    def needed_retrievers(self) -> list[str]:
        """Those that are shown, and those that rerank."""
        reranking = (self.config.rerankings[name].retriever for name in self.rerankings)
        return unique([*self.retrievers, *(name for name in reranking if name is not None)])

    def embeddings(self, model: str, split: str) -> str:
        """The embeddings of a split by a model, or by a matcher in one language."""
        return f"{self.root}/embeddings/{model}/{split}/embeddings.npz"

    def drawn(self, names: Iterable[str], *kinds: str) -> list[str]:
        """Of models that differ in their seed alone only the first; the others stand in the tables.

        Args:
            kinds: the sections of the configuration that ``names`` are of.
        """
        made = self.variants(*kinds)
        first: dict[str, str] = {}
        for name in names:
            first.setdefault(made[name].without("seed") if name in made else name, name)
        return list(first.values())

    @property
    def splits(self) -> list[str]:
        return unique(self.config.run.splits)

    @property
    def needed_splits(self) -> list[str]:
        """Those that are shown, the one things are tuned on, that query banks are of, and that pools are of."""
        rerankings = (self.config.rerankings[name] for name in self.rerankings)
        tunes = any(reranking.by == "retriever" and reranking.weight is None for reranking in rerankings)
        tuned = [VALIDATION] if tunes or self.banked else []
        learnt, pooled = [TRAIN] if self.banked else [], [TEST] if self.config.run.pools else []
        return unique([*self.splits, *tuned, *learnt, *pooled])

    @property
    def backbones(self) -> list[str]:
        """Those that a wanted model looks through."""
        captioners = (self.config.captioners[name].backbone for name in self.trained_captioners)
        retrievers = (
            backbone
            for name in self.needed_retrievers
            for backbone in (self.config.retrievers[name].backbone, *self.config.retrievers[name].views)
        )
        return unique([*captioners, *retrievers])

    @property
    def has_objects(self) -> bool:
        """Whether the data set says which object is where."""
        return self.config.data.dataset == "scenes"

    @property
    def checks_claims(self) -> bool:
        """Whether the captions can be checked claim by claim."""
        return self.has_objects and self.config.text.language == "en"

    def is_trained(self, backbone: str) -> bool:
        return self.config.backbones[backbone].source == TRAINED
