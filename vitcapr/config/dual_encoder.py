"""Configuration of dual encoders: on stored features, and of image and text models that are fine-tuned together."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, SerializeAsAny, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from vitcapr.config.base import CHECKPOINT, Entry, Name, Only, Section, StageSettings, UserPath, with_default
from vitcapr.config.parts import AnyHead, Names
from vitcapr.config.training import FinetuningConfig, Layer, RetrieverTrainingConfig, TrainedConfig
from vitcapr.loader import parts

if TYPE_CHECKING:
    from vitcapr.models.towers import TextTower


class HeadConfig(Section):
    head: AnyHead = Field({"kind": "residual", "hidden_dim": 512}, validate_default=True)
    """linear (ViTCap-R); matrix: linear without bias (DeViSE); mlp: linear, GELU, linear; gated: a gated linear unit
    (SAIL); residual: layer norm, a linear layer and residual two-layer perceptrons; none: nothing is learned, and a
    fixed rotation changes the width to embedding_dim if they differ; or a head of your own (docs/extend.md). mlp, gated
    and residual have hidden_dim, residual has depth, the number of perceptrons: {kind: residual, hidden_dim: 512}."""


class ImageTowerConfig(HeadConfig):
    pool: Literal["cls", "cls_mean", "attention", "attention_mean"] = "cls_mean"
    """cls: the CLS vector (the paper); cls_mean: CLS and the mean of the patches; attention: CLS, if the store has it,
    and the patches, pooled by learned queries; attention_mean: attention and the mean of the patches."""
    queries: Annotated[int, Only("pool", "attention", "attention_mean")] = Field(4, ge=1)
    """Number of learned queries that pool the patches."""
    standardise: Annotated[bool, Only("pool", "cls")] = False
    """Standardise every dimension with the mean and standard deviation of the training images."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on the pooled features and inside an mlp, gated or residual head."""

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays of a feature store that the tower reads."""
        return ("cls",) if self.pool == "cls" else ("cls", "patches")

    @property
    def needed_arrays(self) -> tuple[str, ...]:
        """Arrays that the store must have."""
        return ("patches",) if self.pool in ("attention", "attention_mean") else self.arrays


class TextTowerConfig(Section):
    """The keys that all text towers have."""

    chosen_by = "kind"
    reads_features: ClassVar[bool] = False
    """Whether it reads features of a text encoder."""

    kind: str
    """lstm (the paper) or bilstm over the words; bag: the mean of learned word embeddings; features: features of a text
    encoder, computed once; features_and_words: features and bag together; or a tower of your own (docs/extend.md)."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on word vectors and pooled states, or on text features and inside an mlp, gated or residual
    head."""

    @property
    def text_encoder(self) -> str | None:
        """The entry of text_encoders that it reads."""
        return getattr(self, "encoder", None)


class _Words(TextTowerConfig):
    word_dim: int = Field(256, ge=1)
    """Width of the word embedding."""
    word_vectors: Annotated[str | None, Entry("word_vectors")] = None
    """Name of an entry of word_vectors that initialises the word embedding."""
    max_length: int = Field(35, ge=3)
    """Maximum caption length in tokens, start and end included; longer captions are truncated."""


class _Features(HeadConfig, TextTowerConfig):
    reads_features = True

    head: AnyHead = Field({"kind": "residual", "hidden_dim": 256}, validate_default=True)
    """As that of the image tower."""
    encoder: Annotated[str, Entry("text_encoders")]
    """Name of an entry of text_encoders."""
    standardise: bool = False
    """Standardise every dimension of the text features with the mean and standard deviation of the training
    captions."""


class _Bag(HeadConfig, _Words):
    head: AnyHead = Field({"kind": "residual", "hidden_dim": 256}, validate_default=True)
    """As that of the image tower."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the words that training leaves out of the bag, at random."""

    @model_validator(mode="after")
    def _a_head_is_learned(self) -> Self:
        if not self.head.learns:
            raise ValueError(f"{self.kind} learns word embeddings, so its head cannot be {self.head.kind}")
        return self


class LstmTextConfig(_Words):
    kind: Literal["lstm", "bilstm"] = "lstm"
    pool: Literal["last", "mean", "max"] = "last"
    """last: the state after the last word; mean, max: over the states of all words."""
    hidden_dim: int = Field(256, ge=1)
    """Width of the state."""


class BagTextConfig(_Bag):
    kind: Literal["bag"] = "bag"


class FeaturesTextConfig(_Features):
    kind: Literal["features"] = "features"


class FeaturesAndWordsTextConfig(_Features, _Bag):
    kind: Literal["features_and_words"] = "features_and_words"


class TextTowerPart(TextTowerConfig):
    """The class that a tower of an extension defines: a text tower that reads words, and its keys."""

    max_length: int = Field(35, ge=3)
    """Maximum caption length in tokens, start and end included; longer captions are truncated."""

    def described(self) -> dict[str, Any]:
        """Return the keys as the card of a model keeps them. :meth:`build` reads these."""
        return self.model_dump()

    def build(self, vocabulary: int, embedding_dim: int) -> "TextTower":
        """Return the tower, from word ids (M, T) int64, padded with 0, to the shared space (M, E).

        A module with a method ``begin(words)`` gets the words of the vocabulary before a training starts.

        Args:
            vocabulary: V, number of words.
            embedding_dim: E.
        """
        raise NotImplementedError


def _read_text(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    own = isinstance(value, Mapping) and value.get("kind") in parts("TOWER")
    if own or isinstance(value, TextTowerPart):
        return Names("TOWER", TextTowerPart).read(value)
    return read(value)


_TextConfig = Annotated[
    BagTextConfig | LstmTextConfig | FeaturesTextConfig | FeaturesAndWordsTextConfig, Field(discriminator="kind")
]
AnyTextConfig = Annotated[
    SerializeAsAny[_TextConfig],
    WrapValidator(_read_text),
    with_default("kind", "bag"),
]


class RetrieverConfig(TrainedConfig):
    backbone: Annotated[str, Entry("backbones")]
    """Name of an entry of backbones."""
    layer: Layer = None
    """Hidden layer of the backbone to read, also of its augmented views; one of the backbone's layers; null: the output
    of the backbone."""
    augmented_views: Annotated[list[str], Entry("backbones", mirrored=True)] = []
    """Names of backbones that give augmented views: the same network on changed pictures (mirror). Training samples one
    view per image; the embedding of an image is the mean over its views."""
    embedding_dim: int = Field(256, ge=2)
    """Width of the space that images and texts share."""
    temperature: float = Field(0.07, ge=0.01, le=1)
    """Temperature of info_nce; the initial value if it is learned."""
    learn_temperature: bool = True
    members: int = Field(1, ge=1)
    """Number of dual encoders trained together, from different weights; a cosine is the mean of theirs."""
    image: ImageTowerConfig = ImageTowerConfig()
    text: AnyTextConfig = BagTextConfig()
    training: RetrieverTrainingConfig = RetrieverTrainingConfig()

    @property
    def learns(self) -> bool:
        """Whether at least one tower has weights to learn."""
        raw_image = not self.image.head.learns and self.image.pool in ("cls", "cls_mean")
        return not (raw_image and isinstance(self.text, FeaturesTextConfig) and not self.text.head.learns)

    @model_validator(mode="after")
    def _augmented_views_differ(self) -> Self:
        seen = [self.backbone, *self.augmented_views]
        for name in seen:
            if seen.count(name) > 1:
                raise ValueError(f"'{name}' occurs twice in backbone and augmented_views")
        return self

    @model_validator(mode="after")
    def _trains_what_it_can(self) -> Self:
        phases = self.training.phases
        if self.learns and not phases:
            raise ValueError("training.phases is empty, but a tower has weights to learn")
        if not self.learns and phases:
            raise ValueError("with head none on both sides nothing is learned; set training: {phases: []}")
        if self.members > 1 and not self.learns:
            raise ValueError("with head none on both sides nothing is learned; set members to 1")
        if self.text.kind != "features" and any(phase.mixup for phase in phases):
            raise ValueError(f"mixup needs text kind features, not {self.text.kind}")
        if not self.text.reads_features and any(phase.structure for phase in phases):
            raise ValueError(f"structure needs text kind features or features_and_words, not {self.text.kind}")
        return self


_SCRATCH = Only("source", None)


class FinetunedImageConfig(Section):
    backbone: Annotated[str, Entry("backbones")]
    """Name of an entry of backbones; the image tower starts from its checkpoint."""
    pool: Literal["cls", "mean"] = "cls"
    """Image vector: the CLS vector (the BERT-ViT paper), or the mean over the patches."""
    top_layers: int | None = Field(None, ge=0)
    """Number of upper layers to train; null: all of the model, 0: none."""


class FinetunedTextConfig(Section):
    """A text tower and the languages of its captions."""

    languages: list[Name] = Field(["en"], min_length=1)
    source: Annotated[UserPath | None, CHECKPOINT] = None
    """A hub id or a local folder (looked up under VITCAPR_BACKBONES first); null: a small BERT from scratch."""
    revision: Annotated[str, Only("source")] = "main"
    pool: Literal["cls", "mean"] = "cls"
    """Caption vector: the CLS vector (the BERT-ViT paper), or the mean over the tokens."""
    max_length: int = Field(48, ge=4)
    """Maximum caption length in the tower's tokens, special tokens included; longer captions are truncated."""
    top_layers: Annotated[int | None, Only("source")] = Field(None, ge=0)
    """Number of upper layers to train; null: all of the model, 0: none."""
    tags: bool = False
    """Add an embedding of each word's part of speech to its token embeddings."""
    segments: bool = False
    """Read the first clause of a caption and the rest as two segments, with the token types 0 and 1."""

    title_weight: float = Field(1.0, ge=1)
    """Factor on the attention that tokens pay to titles, their marks included (《》, 〈〉 and <>); 1: no weight."""
    tokenizer: Annotated[str | None, Entry("tokenizers")] = None
    """Name of an entry of tokenizers, for a tower from scratch."""
    layers: Annotated[int, _SCRATCH] = Field(4, ge=1)
    """Number of layers."""
    hidden_dim: Annotated[int, _SCRATCH] = Field(256, ge=8)
    heads: Annotated[int, _SCRATCH] = Field(4, ge=1)
    dropout: Annotated[float, _SCRATCH] = Field(0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _a_tokenizer_goes_with_scratch(self) -> Self:
        if (self.source is None) != (self.tokenizer is not None):
            raise ValueError("a text tower needs either source (a checkpoint) or tokenizer (from scratch), not both")
        if self.hidden_dim % self.heads:
            raise ValueError(f"hidden_dim {self.hidden_dim} is not a multiple of heads {self.heads}")
        return self


class FinetunedDualEncoderConfig(TrainedConfig):
    image: FinetunedImageConfig
    text: dict[Name, FinetunedTextConfig] = Field(min_length=1)
    """Text towers by name. Exactly one tower reads each language."""
    embedding_dim: int | None = Field(None, ge=2)
    """Width of the linear projections to the shared space; null: none (the paper), for towers of equal width."""
    temperature: float = Field(0.1, ge=0.01, le=1)
    """Temperature of the loss (the paper: 0.1); the initial value if it is learned."""
    learn_temperature: bool = False
    training: FinetuningConfig = FinetuningConfig()

    @model_validator(mode="after")
    def _a_language_has_one_tower(self) -> Self:
        languages = self.languages
        if len(languages) != len(set(languages)):
            raise ValueError("two text towers read the same language; each language has one tower")
        return self

    @property
    def languages(self) -> list[str]:
        return [language for tower in self.text.values() for language in tower.languages]


class FinetuneSettings(StageSettings):
    """The settings of an untrained dual encoder and of its training."""

    finetuned: FinetunedDualEncoderConfig
    seed: int = Field(0, ge=0, lt=2**32)
    """The seed of the fine-tuned dual encoder, or that of the experiment if the fine-tuned dual encoder sets none."""
    revision: str = "main"
    """Hub revision of the image tower's checkpoint."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        finetuned, seed = config.finetuned_dual_encoders[wildcards.finetuned].seeded(config.seed)
        return cls(finetuned=finetuned, seed=seed, revision=config.backbones[finetuned.image.backbone].revision)


class EmbedFinetunedSettings(StageSettings):
    """The settings of the stage ``embed_finetuned``."""

    training: FinetuneSettings
    """The definition of the untrained model; a trained model carries its own."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        return cls(training=FinetuneSettings.from_config(config, wildcards))


EXECUTION_ONLY = ("chunk", "processes")
"""Execution-only keys of a fine-tuned dual encoder's training. They change the result by rounding only."""
