"""The definitions of a configuration that an experiment uses: the values of the rules' wildcards, and common paths."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitcapr.config.base import Section
from vitcapr.config.data import DatasetConfig
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.features import TRAINED
from vitcapr.config.scored import RANKED, ScoredModels, unique
from vitcapr.experiment.stored import NO_GRID, Stored, stored_by
from vitcapr.pipeline.paths import RESULTS
from vitcapr.rooms import ask

TRAIN, VALIDATION, TEST = "train", "validation", "test"
"""All tuning is on the validation split."""
PAIRS = "training.pairs"
"""The setting of a retriever that a learning curve varies."""


@dataclass(frozen=True)
class Selection(ScoredModels):
    """What an experiment uses of its configuration.

    Attributes:
        results: the folder of all results.
        on_cluster: whether the jobs run on other machines, whose GPUs are not seen here.
    """

    config: ExperimentConfig
    results: Path = RESULTS
    on_cluster: bool = False

    @property
    def name(self) -> str:
        return self.config.experiment

    @property
    def root(self) -> str:
        """The folder of the experiment, as the rules write it."""
        return f"{RESULTS}/{self.name}"

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
    def decodings(self) -> list[str]:
        """The decodings whose captions are shown and scored."""
        return unique(self.config.run.decodings)

    @property
    def rerankings(self) -> list[str]:
        return unique(self.config.run.rerankings)

    @property
    def by_retriever(self) -> list[str]:
        """The rerankings by a retriever."""
        return [name for name in self.rerankings if self.config.rerankings[name].by == "retriever"]

    @property
    def oracles(self) -> list[str]:
        """The rerankings by the references."""
        return [name for name in self.rerankings if self.config.rerankings[name].by == "oracle"]

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
    def needed_dual_encoders(self) -> list[str]:
        """The fine-tuned dual encoders of ``run``, and those whose loss curves are drawn."""
        return unique([*self.finetuned_dual_encoders, *(n for ns in self.config.run.loss_curves.values() for n in ns)])

    @property
    def backbones(self) -> list[str]:
        """The backbones of all models to train on stored features, those of rooms, and that of CLIPScore."""
        retrievers = [self.config.retrievers[name] for name in self.needed_retrievers]
        clip = self.config.metrics.clip_score
        return unique(
            [
                *(self.config.captioners[name].backbone for name in self.trained_captioners),
                *(name for model in retrievers for name in (model.backbone, *model.augmented_views)),
                *ask("backbones", self.config),
                *([clip.backbone] if clip and self.captioners else []),
            ]
        )

    @property
    def pixel_backbones(self) -> list[str]:
        """The backbones to fine-tune on decoded pixels."""
        return unique(self.config.finetuned_dual_encoders[name].image.backbone for name in self.needed_dual_encoders)

    @property
    def adopted(self) -> list[str]:
        """The backbones whose features are a store that exists."""
        return [name for name in self.backbones if self.config.backbones[name].is_adopted]

    @property
    def extracted(self) -> list[str]:
        return [name for name in self.backbones if not self.config.backbones[name].is_adopted]

    def is_trained(self, backbone: str) -> bool:
        """Whether the experiment trains this backbone."""
        return self.config.backbones[backbone].source == TRAINED

    @property
    def text_encoders(self) -> list[str]:
        """The text encoders of the retrievers to train and of rooms."""
        encoders = [self.config.retrievers[name].text.text_encoder for name in self.needed_retrievers]
        return unique([*(name for name in encoders if name is not None), *ask("text_encoders", self.config)])

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
        metrics = self.config.metrics
        used = (metrics.clip_score, metrics.sentence_similarity, metrics.bert_score)
        return [each.text_encoder for each in used if each is not None]

    @property
    def word_vectors(self) -> list[str]:
        """The word vectors that initialise a model to train."""
        models: list[Section] = [self.config.captioners[name] for name in self.trained_captioners]
        models += [self.config.retrievers[name].text for name in self.needed_retrievers]
        names = (getattr(model, "word_vectors", None) for model in models)
        return unique(name for name in names if name is not None)

    @property
    def tokenizers(self) -> list[str]:
        models = (self.config.finetuned_dual_encoders[name] for name in self.needed_dual_encoders)
        names = (tower.tokenizer for model in models for tower in model.text.values())
        return unique(name for name in names if name is not None)

    @property
    def languages(self) -> list[str]:
        """The languages that fine-tuned dual encoders read."""
        models = (self.config.finetuned_dual_encoders[name] for name in self.finetuned_dual_encoders)
        return unique(language for model in models for language in model.languages)

    @property
    def dataset(self) -> DatasetConfig:
        """The section of the data set."""
        section: DatasetConfig = getattr(self.config.data, self.config.data.dataset)
        return section

    @cached_property
    def stored(self) -> dict[str, Stored]:
        """What the store of each backbone holds."""
        return {name: stored_by(self.config, name, self.results) for name in self.backbones}

    @property
    def attentive_captioners(self) -> list[str]:
        """The captioners whose attention has a place in the picture."""
        captioners = {name: self.config.captioners[name] for name in self.captioners}
        return [
            name for name, each in captioners.items() if each.attends and self.stored[each.backbone].grid != NO_GRID
        ]

    @property
    def attentive_decodings(self) -> list[str]:
        """The decodings of ``run`` that store attention."""
        return [name for name in self.decodings if self.config.decodings[name].attention]

    @property
    def attention(self) -> list[dict[str, str]]:
        """The captions with stored attention, as wildcards."""
        return [
            {"captioner": captioner, "decoding": decoding, "split": split}
            for captioner in self.attentive_captioners
            for decoding in self.attentive_decodings
            for split in self.splits
        ]

    def representatives(self, names: Iterable[str], *kinds: str) -> list[str]:
        """Of models that differ only in their seed, the first. Figures show these; tables list all models.

        Args:
            kinds: the sections of the configuration that contain ``names``.
        """
        variants = self.variants(*kinds)
        first: dict[str, str] = {}
        for name in names:
            first.setdefault(variants[name].without("seed") if name in variants else name, name)
        return list(first.values())

    def trained(self, section: str) -> list[str]:
        """The models of a section that the experiment trains; of models that differ only in their seed, the first."""
        if section == "backbones":
            return [TRAINED] if any(map(self.is_trained, [*self.backbones, *self.pixel_backbones])) else []
        names = {
            "captioners": self.trained_captioners,
            "retrievers": self.needed_retrievers,
            "finetuned_dual_encoders": self.needed_dual_encoders,
        }
        return self.representatives(names[section], section)

    @property
    def captions(self) -> dict[str, str]:
        """The captions of every captioner and decoding or reranking, by name, with the wildcard ``split``."""
        return self.captions_by(self.caption_sources)

    def captions_by(self, sources: Iterable[str]) -> dict[str, str]:
        """Like :attr:`captions`, by these decodings and rerankings."""
        captioners = self.representatives(self.captioners, "captioners")
        names = [f"{captioner}/{source}" for captioner in captioners for source in sources]
        return {name: f"{self.root}/captions/{name}/{{split}}/captions.json" for name in names}

    def claims(self, captions: Mapping[str, str]) -> dict[str, str]:
        """The claims of captions beside the captions, where a room checks them."""
        checked = any(ask("checks_claims", self.config))
        return {name: path.replace("captions.json", "claims.json") for name, path in captions.items() if checked}

    @property
    def retrievals(self) -> list[dict[str, str]]:
        """The models and splits whose retrieval is drawn, as wildcards."""
        models = self.representatives(self.ranked, *RANKED)
        return [{"retriever": model, "split": split} for model in models for split in self.splits]

    @property
    def compared(self) -> dict[str, dict[str, str]]:
        """For each language, the models to draw side by side and the names of their embeddings."""
        models: dict[str, dict[str, str]] = {}
        for name in self.representatives(unique(self.config.run.compared), *RANKED):
            for language, embedded in self.by_language(name).items():
                models.setdefault(language, {})[name] = embedded
        return models

    @property
    def pair_families(self) -> dict[str, list[str]]:
        """For each retriever with a varied number of training pairs, the retrievers that a grid made of it."""
        variants = self.config.variants.get("retrievers", {})
        varied = {variant.of for variant in variants.values() if PAIRS in variant.vary}
        families: dict[str, list[str]] = {}
        for name in self.retrievers:
            family = variants[name].of if name in variants else name
            if family in varied:
                families.setdefault(family, []).append(name)
        return families

    @property
    def recall_systems(self) -> dict[str, str]:
        """The names of the scores in the figure of recall, each with its system."""
        # Models of a learning curve have a figure of their own. They are in this one only if there are no others.
        variants = self.config.variants.get("retrievers", {})
        others = [name for name in self.ranked if name not in variants or PAIRS not in variants[name].vary]
        banks = {model: name for name, model in self.querybank_scores.items()}
        names = [each for name in others or self.ranked for each in (name, banks.get(name)) if each is not None]
        return {name: self.system_name(name) for name in names}

    def sealed(self, backbone: str) -> str:
        """The sealed image features of a backbone."""
        return f"{self.root}/features/{backbone}/manifest.json"

    def embeddings(self, model: str, split: str) -> str:
        """A model's embeddings of a split."""
        return f"{self.root}/embeddings/{model}/{split}/embeddings.npz"
