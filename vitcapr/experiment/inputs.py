"""What a job reads, by its wildcards: files of other jobs, and files of the user by their keys in the configuration."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vitcapr.config.base import ADOPTED, Section, find_backbone
from vitcapr.config.captioner import RerankingConfig
from vitcapr.config.features import TRAINED, BackboneConfig, TextEncoderConfig
from vitcapr.config.finetuned_dual_encoder import FinetunedDualEncoderConfig
from vitcapr.encoders.kinds import rolls_out
from vitcapr.experiment.selection import TRAIN, Selection
from vitcapr.formats.kinds import BACKBONE_FILES, MODEL_FILES
from vitcapr.pipeline.paths import find_store, stores_root
from vitcapr.pipeline.rule import Wildcards
from vitcapr.pipeline.stage import find_stage


@dataclass(frozen=True)
class Inputs(Selection):
    """The input functions of the rules. A list is empty where a job does not read such a file."""

    # Features

    def sealed_views(self, backbones: Iterable[str]) -> list[str]:
        return list(map(self.sealed, backbones))

    def text_features(self, encoder: str | None) -> list[str]:
        return [] if encoder is None else [f"{self.root}/text_features/{encoder}/manifest.json"]

    def parts(self, wildcards: Wildcards) -> list[str]:
        """The parts of an extraction that several jobs share."""
        tasks = range(self.config.features.tasks)
        return [f"{self.root}/features/{wildcards.backbone}/parts/{task}.json" for task in tasks]

    def adopted_store(self, encoder: BackboneConfig | TextEncoderConfig) -> str:
        """The sealed manifest of the store that is the source of an encoder."""
        return str(find_store(encoder.source.removeprefix(ADOPTED), self.results))

    def stores(self, _: Wildcards) -> str:
        """The folder of all stores."""
        return str(stores_root(self.results))

    def trained_backbone(self, name: str) -> list[str]:
        """The files of a backbone, if the experiment trains it."""
        trained = self.is_trained(name)
        return [f"{self.root}/backbones/{TRAINED}/{file}" for file in BACKBONE_FILES] if trained else []

    def backbone_source(self, name: str) -> str:
        """A hub id or a folder."""
        return f"{self.root}/backbones/{TRAINED}" if self.is_trained(name) else self.config.backbones[name].source

    def rolls_out(self, backbone: str) -> bool:
        """Whether the attention of a backbone can be rolled out on the stored grid: not that of a store, of a plugin,
        of a network without CLS, or of pooled patches."""
        config = self.config.backbones[backbone]
        known = rolls_out(find_backbone(config.source), config.kind)
        return known and not config.is_adopted and config.patches == "all"

    # Captions

    def initial_vectors(self, model: Section) -> list[str]:
        """The word vectors that initialise a captioner or the text tower of a retriever."""
        name = getattr(model, "word_vectors", None)
        return [] if name is None else [f"{self.root}/text/word_vectors/{name}/vectors.npy"]

    def vocabulary(self, wildcards: Wildcards) -> str:
        """The words of a captioner, or the pieces of its language model."""
        has_pieces = hasattr(self.config.captioners[wildcards.captioner], "language_model")
        return f"{self.root}/text/{f'pieces/{wildcards.captioner}/' if has_pieces else ''}vocabulary.json"

    def tokens(self, wildcards: Wildcards) -> str:
        return self.vocabulary(wildcards).replace("vocabulary.json", "tokens.npz")

    def start(self, wildcards: Wildcards) -> list[str]:
        """The captioner that training starts from."""
        name = self.config.captioners[wildcards.captioner].start_from
        return [] if name is None else [f"{self.root}/captioners/{name}/{file}" for file in MODEL_FILES]

    def candidates(self, wildcards: Wildcards, split: str | None = None) -> str:
        """The captions that a reranking reorders, of the job's split or of another one."""
        source = self._reranking(wildcards).decoding
        return f"{self.root}/captions/{wildcards.captioner}/{source}/{split or wildcards.split}/captions.json"

    def reranking_weight(self, wildcards: Wildcards) -> list[str]:
        """The weight selected on the validation split; none if it is fixed."""
        folder = f"{self.root}/reranking/{wildcards.captioner}/{wildcards.reranking}"
        return [f"{folder}/weight.json"] if self._reranking(wildcards).weight is None else []

    def reranking_retriever(self, wildcards: Wildcards) -> list[str]:
        return [f"{self.root}/retrievers/{self._reranking(wildcards).retriever}/{file}" for file in MODEL_FILES]

    def paraphrases(self, wildcards: Wildcards) -> list[str]:
        """METEOR's paraphrases of the split."""
        folder = f"{self.root}/text/paraphrases/{wildcards.split}"
        metrics = self.config.metrics.caption_in(self.config.text.language)
        return [f"{folder}/card.json", f"{folder}/table.gz"] if "meteor" in metrics else []

    def clip_features(self, _: Wildcards) -> list[str]:
        """The image features of CLIPScore."""
        clip = self.config.metrics.clip_score
        return [] if clip is None else [self.sealed(clip.backbone)]

    def compared_scores(self, wildcards: Wildcards) -> str:
        """The scores that a comparison starts from."""
        return f"{self._compared(wildcards)}/metrics.json"

    def compared_images(self, wildcards: Wildcards) -> str:
        return f"{self._compared(wildcards)}/per_image.parquet"

    # Embeddings

    def scored_embeddings(self, wildcards: Wildcards) -> str:
        """The embeddings that are scored under a name, with or without a query bank."""
        return self.embeddings(self._embedded(wildcards), wildcards.split)

    def pooled_embeddings(self, wildcards: Wildcards) -> list[str]:
        """The embeddings of the queries' split and of the splits of distractors."""
        return [self.embeddings(self._embedded(wildcards), split) for split in self.pooled_splits]

    def query_bank(self, wildcards: Wildcards) -> list[str]:
        model = self.querybank_scores.get(wildcards.scored)
        return [] if model is None else [self.embeddings(model, TRAIN)]

    def bank_weight(self, wildcards: Wildcards) -> list[str]:
        model = self.querybank_scores.get(wildcards.scored)
        return [] if model is None else [f"{self.root}/query_banks/{model}/weight.json"]

    # Fine-tuned dual encoders

    def pixels(self, model: FinetunedDualEncoderConfig) -> str:
        return f"{self.root}/pixels/{model.image.backbone}/manifest.json"

    def tokenizer_files(self, model: FinetunedDualEncoderConfig) -> dict[str, str]:
        names = (tower.tokenizer for tower in model.text.values() if tower.tokenizer is not None)
        return {name: f"{self.root}/tokenizers/{name}/tokenizer.json" for name in names}

    def tags(self, model: FinetunedDualEncoderConfig) -> list[str]:
        """The parts of speech, for a model that adds them."""
        return [f"{self.root}/text/tags/tags.npz"] if any(tower.tags for tower in model.text.values()) else []

    def pairs(self, model: FinetunedDualEncoderConfig) -> list[str]:
        """The texts before cleaning, whose punctuation divides captions into segments."""
        segmented = any(tower.segments for tower in model.text.values())
        cleaned = self.config.data.dataset == "pairs"
        return [f"{self.root}/data/pairs.parquet"] if segmented and cleaned else []

    # Files of the user

    def data_files(self) -> dict[str, Path]:
        settings = find_stage(self.dataset.stage).settings
        assert settings is not None
        return dict(settings.from_config(self.config, None).user_files())

    def vector_files(self, encoder: str) -> dict[str, Path]:
        """The word-vector file of a text encoder of word vectors; empty for others."""
        config = self.config.text_encoders[encoder]
        return self._keyed(f"text_encoders.{encoder}", config) if config.output == "word_vectors" else {}

    @property
    def user_files(self) -> dict[str, Path]:
        """The files and folders of the user that must exist before the experiment can run."""
        files = self.data_files() | self._keyed("metrics", self.config.metrics)
        for name in self.word_vectors:
            files |= self._keyed(f"word_vectors.{name}", self.config.word_vectors[name])
        for name in self.text_encoders:
            files |= self.vector_files(name)
        return files

    @staticmethod
    def _keyed(section: str, config: Section) -> dict[str, Path]:
        return {f"{section}.{key}": path for key, path in config.user_files()}

    def _reranking(self, wildcards: Wildcards) -> RerankingConfig:
        return self.config.rerankings[wildcards.reranking]

    def _embedded(self, wildcards: Wildcards) -> str:
        return self.querybank_scores.get(wildcards.scored, str(wildcards.scored))

    def _compared(self, wildcards: Wildcards) -> str:
        captioner, source = wildcards.captioner, wildcards.decoding
        if source in self.rerankings:
            source = self.config.rerankings[source].decoding
        else:
            captioner = self.config.captioners[captioner].start_from
        return f"{self.root}/metrics/{captioner}/{source}/{wildcards.split}"
