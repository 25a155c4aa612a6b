"""The definitions of a configuration that an experiment uses: the values of the rules' wildcards."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from vitcapr.config.base import named_entries
from vitcapr.config.dual_encoder import ranked_sections
from vitcapr.config.experiment import ExperimentConfig, ScoredModels, unique
from vitcapr.config.features import TRAINED
from vitcapr.config.training import TrainedConfig
from vitcapr.experiment import paths
from vitcapr.loader import ask, sections_to_run

TRAIN, VALIDATION, TEST = "train", "validation", "test"
"""All tuning is on the validation split."""
_SECTIONS = ("text_encoders", "captioners", "retrievers", "rerankings")


@dataclass(frozen=True)
class Models(ScoredModels):
    """The names of what an experiment trains, scores and reads."""

    @property
    def root(self) -> str:
        """The folder of the experiment, as the rules write it."""
        return paths.fill(paths.ROOT, experiment=self.config.experiment)

    @property
    def data_alone(self) -> bool:
        """Whether the file has no section of models: a run then makes the data set, for features to import."""
        return not self.config.model_fields_set & {*_SECTIONS, *sections_to_run()}

    @property
    def splits(self) -> list[str]:
        """The splits that are captioned and scored."""
        return unique(self.config.run.splits)

    @property
    def pooled_splits(self) -> list[str]:
        """The split of the queries of pools, and those of their distractors."""
        return [TEST, *self.config.data.pairs.distractors]

    @property
    def needed_splits(self) -> list[str]:
        """The splits of ``run``, and those that tuning, query banks and pools need."""
        rerankings = (self.config.rerankings[name] for name in self.rerankings)
        tunes = any(reranking.by == "retriever" and reranking.weight is None for reranking in rerankings)
        tuned = [VALIDATION] if tunes or self.querybank_scores else []
        learnt = [TRAIN] if self.querybank_scores else []
        return unique([*self.splits, *tuned, *learnt, *(self.pooled_splits if self.config.run.pools else [])])

    @property
    def split_uses(self) -> dict[str, str]:
        """The use of each split that needs images: ``training``, ``tuning`` or ``run.splits``."""
        trained = [name for section in self.trained_sections for name in self.needed(section)]
        training = dict.fromkeys([TRAIN, VALIDATION] if trained else [], "training")
        scored = {} if self.data_alone else dict.fromkeys(self.splits, "run.splits")
        return {**dict.fromkeys([] if self.data_alone else self.needed_splits, "tuning"), **scored, **training}

    @property
    def decodings(self) -> list[str]:
        """The decodings whose captions are shown and scored."""
        return unique(self.config.run.decodings)

    @property
    def rerankings(self) -> list[str]:
        return unique(self.config.run.rerankings)

    def rerankings_by(self, kind: str) -> list[str]:
        """Return the rerankings by a ``retriever``, or by the references (``oracle``)."""
        return [name for name in self.rerankings if self.config.rerankings[name].by == kind]

    @property
    def caption_sources(self) -> list[str]:
        return [*self.decodings, *self.rerankings]

    @property
    def trained_captioners(self) -> list[str]:
        """The captioners of ``run``, each preceded by those that it starts from."""
        return unique(name for captioner in self.captioners for name in self.config.start_chain(captioner))

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
    def trained_sections(self) -> list[str]:
        """The sections of models to train, of the core and of extensions."""
        return ["captioners", "retrievers", *sections_to_run(TrainedConfig)]

    def needed(self, section: str) -> list[str]:
        """Return the models of a section that ``run`` names, and those that they need."""
        needed = {"captioners": self.trained_captioners, "retrievers": self.needed_retrievers}
        return needed[section] if section in needed else self.config.run.named(section)

    def _entries(self, section: str) -> list[str]:
        """Return the entries of a section that the definitions of a run name."""
        sections = dict.fromkeys([*self.trained_sections, *sections_to_run()])
        definitions = [getattr(self.config, each)[name] for each in sections for name in self.needed(each)]
        named = (each for definition in definitions for each in named_entries(definition, ""))
        return unique(name for _, entry, names in named if entry.section == section for name in names)

    @property
    def backbones(self) -> list[str]:
        """The backbones of everything that reads stored features."""
        retrievers = [self.config.retrievers[name] for name in self.needed_retrievers]
        clip = self.config.metrics.clip_score
        return unique(
            [
                *(self.config.captioners[name].backbone for name in self.trained_captioners),
                *(name for model in retrievers for name in (model.backbone, *model.augmented_views)),
                *(name for _, backbones, _ in ask("arrays", self.config) for name in backbones),
                *([clip.backbone] if clip and self.captioners else []),
            ]
        )

    @property
    def adopted(self) -> list[str]:
        """The backbones whose features are a store that exists."""
        return [name for name in self.backbones if self.config.backbones[name].is_adopted]

    @property
    def extracted(self) -> list[str]:
        return [name for name in self.backbones if not self.config.backbones[name].is_adopted]

    def is_trained(self, backbone: str) -> bool:
        """Return whether the experiment trains this backbone."""
        return self.config.backbones[backbone].source == TRAINED

    @property
    def text_encoders(self) -> list[str]:
        """The text encoders whose features are read."""
        return self._entries("text_encoders")

    @property
    def adopted_texts(self) -> list[str]:
        """The text encoders whose features are a store that exists."""
        return [name for name in self.text_encoders if self.config.text_encoders[name].is_adopted]

    @property
    def extracted_texts(self) -> list[str]:
        return [name for name in self.text_encoders if not self.config.text_encoders[name].is_adopted]

    @property
    def scoring_encoders(self) -> list[str]:
        """The text encoders that score captions."""
        clip_score = self.config.metrics.clip_score
        return [clip_score.text_encoder] if clip_score else []

    @property
    def word_vectors(self) -> list[str]:
        """The word vectors that initialise a model to train."""
        return self._entries("word_vectors")

    @property
    def attentive_decodings(self) -> list[str]:
        """The decodings of ``run`` that store attention."""
        return [name for name in self.decodings if self.config.decodings[name].attention]

    def representatives(self, names: Iterable[str], *sections: str) -> list[str]:
        """Return the first of all models that differ only in their seed; figures show it, tables list all.

        Args:
            sections: those that contain ``names``; by default all of dual encoders.
        """
        seeds = self.seeds(*(sections or ranked_sections()))
        first: dict[str, str] = {}
        for name in names:
            first.setdefault(seeds[name].system if name in seeds else name, name)
        return list(first.values())

    def trained(self, section: str) -> list[str]:
        """Return the trained models of a section; of models that differ only in their seed, the first."""
        if section == "backbones":
            used = [*self.backbones, *self._entries("backbones")]
            return [TRAINED] if any(map(self.is_trained, used)) else []
        return self.representatives(self.needed(section), section)


@dataclass(frozen=True)
class Part:
    """The files of one subject."""

    models: Models

    @property
    def config(self) -> ExperimentConfig:
        return self.models.config

    def path(self, pattern: str, **wildcards: object) -> str:
        """Return a path of this experiment: a pattern with the values of its other wildcards."""
        return paths.fill(pattern, **{**wildcards, "experiment": self.config.experiment})

    def every(self, pattern: str, **wildcards: Iterable[str]) -> list[str]:
        """Return the paths for all combinations of the values of the wildcards."""
        chosen = product(*wildcards.values())
        return [self.path(pattern, **dict(zip(wildcards, values, strict=True))) for values in chosen]
