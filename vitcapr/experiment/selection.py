"""The definitions of a configuration that an experiment uses, and their paths."""

from collections.abc import Iterable
from dataclasses import dataclass

from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.features import TRAINED
from vitcapr.config.scored import ScoredModels
from vitcapr.experiment.names import unique
from vitcapr.pipeline.paths import RESULTS

TRAIN, VALIDATION, TEST = "train", "validation", "test"
"""All tuning is on the validation split."""


@dataclass(frozen=True)
class Selection(ScoredModels):
    """The values of the rules' wildcards."""

    config: ExperimentConfig

    @property
    def name(self) -> str:
        return self.config.experiment

    @property
    def root(self) -> str:
        return f"{RESULTS}/{self.name}"

    @property
    def trained_captioners(self) -> list[str]:
        """The captioners of ``run``, each preceded by those that it starts from."""
        return unique(name for wanted in self.captioners for name in self.config.start_chain(wanted))

    @property
    def decodings(self) -> list[str]:
        """The decodings whose captions are shown and scored."""
        return unique(self.config.run.decodings)

    @property
    def rerankings(self) -> list[str]:
        return unique(self.config.run.rerankings)

    @property
    def needed_decodings(self) -> list[str]:
        """The decodings of ``run``, and those that rerankings reorder."""
        return unique([*self.decodings, *(self.config.rerankings[name].decoding for name in self.rerankings)])

    @property
    def needed_retrievers(self) -> list[str]:
        """The retrievers of ``run``, and those of rerankings."""
        reranking = (self.config.rerankings[name].retriever for name in self.rerankings)
        return unique([*self.retrievers, *(name for name in reranking if name is not None)])

    @property
    def alignments(self) -> list[str]:
        return unique(self.config.run.alignments)

    def embeddings(self, model: str, split: str) -> str:
        """The path of a model's embeddings of a split."""
        return f"{self.root}/embeddings/{model}/{split}/embeddings.npz"

    def representatives(self, names: Iterable[str], *kinds: str) -> list[str]:
        """The models to draw: of models that differ only in their seed, the first. The tables list all of them.

        Args:
            kinds: the sections of the configuration that contain ``names``.
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
        """The splits of ``run``, and those that tuning, query banks and pools need."""
        rerankings = (self.config.rerankings[name] for name in self.rerankings)
        tunes = any(reranking.by == "retriever" and reranking.weight is None for reranking in rerankings)
        tuned = [VALIDATION] if tunes or self.querybank_scores else []
        learnt = [TRAIN] if self.querybank_scores else []
        return unique([*self.splits, *tuned, *learnt, *(self.pooled_splits if self.config.run.pools else [])])

    @property
    def pooled_splits(self) -> list[str]:
        """The split of the queries of pools, and those of their distractors."""
        return [TEST, *self.config.data.pairs.distractors]

    @property
    def backbones(self) -> list[str]:
        """The backbones of all models to train, those of alignments, and that of CLIPScore."""
        captioners = (self.config.captioners[name].backbone for name in self.trained_captioners)
        retrievers = (
            backbone
            for name in self.needed_retrievers
            for backbone in (self.config.retrievers[name].backbone, *self.config.retrievers[name].augmented_views)
        )
        aligned = (
            backbone
            for name in self.alignments
            for backbone in (self.config.alignments[name].image, *self.config.alignments[name].views)
        )
        clip = self.config.metrics.clip_score
        scoring = [clip.backbone] if clip and self.captioners else []
        return unique([*captioners, *retrievers, *aligned, *scoring])

    @property
    def has_objects(self) -> bool:
        """Whether the data set has object masks."""
        return self.config.data.dataset == "scenes"

    @property
    def checks_claims(self) -> bool:
        """Whether the captions can be checked claim by claim."""
        return self.has_objects and self.config.text.language == "en"

    def is_trained(self, backbone: str) -> bool:
        return self.config.backbones[backbone].source == TRAINED
