"""Configuration of a retriever, a dual encoder for image-text retrieval, and of its training."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from vitcapr.config.base import Entry, Only, Section, with_default
from vitcapr.config.training import (
    Layer,
    PhaseConfig,
    Schedule,
    SweepConfig,
    TrainedConfig,
    TrainingConfig,
    one_or_more,
)

Head = Literal["none", "matrix", "linear", "mlp", "gated", "residual"]


class HeadConfig(Section):
    head: Head = "residual"
    """linear (ViTCap-R); matrix: linear without bias (DeViSE); mlp: linear, GELU, linear; gated: a gated linear unit
    (SAIL); residual: layer norm, a linear layer and residual two-layer perceptrons; none: nothing is learned, and a
    fixed rotation changes the width to embedding_dim if they differ."""
    hidden_dim: Annotated[int, Only("head", "mlp", "gated", "residual")] = Field(512, ge=1)
    """Hidden width of the head."""
    depth: Annotated[int, Only("head", "residual")] = Field(1, ge=1)
    """Number of residual perceptrons in sequence."""


class ImageTowerConfig(HeadConfig):
    pool: Literal["cls", "cls_mean", "attention", "attention_mean"] = "cls_mean"
    """cls: the CLS vector (the paper); cls_mean: CLS and the mean of the patches; attention: the patches, pooled by
    learned queries; attention_mean: attention and the mean of the patches."""
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


class TextTowerConfig(Section):
    """The keys that all text towers have."""

    chosen_by = "kind"
    reads_features: ClassVar[bool] = False
    """Whether it reads features of a text encoder."""

    kind: str
    """lstm (the paper) or bilstm over the words; bag: the mean of learned word embeddings; features: features of a text
    encoder, computed once; features_and_words: features and bag together."""
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

    hidden_dim: Annotated[int, Only("head", "mlp", "gated", "residual")] = Field(256, ge=1)
    """Hidden width of the head."""
    encoder: Annotated[str, Entry("text_encoders")]
    """Name of an entry of text_encoders."""
    standardise: bool = False
    """Standardise every dimension of the text features with the mean and standard deviation of the training
    captions."""


class _Bag(HeadConfig, _Words):
    hidden_dim: Annotated[int, Only("head", "mlp", "gated", "residual")] = Field(256, ge=1)
    """Hidden width of the head."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the words that training leaves out of the bag, at random."""

    @model_validator(mode="after")
    def _a_head_is_learned(self) -> Self:
        if self.head == "none":
            raise ValueError(f"{self.kind} learns word embeddings, so its head cannot be none")
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


AnyTextConfig = Annotated[
    BagTextConfig | LstmTextConfig | FeaturesTextConfig | FeaturesAndWordsTextConfig,
    Field(discriminator="kind"),
    with_default("kind", "bag"),
]


class DualEncoderPhaseConfig(PhaseConfig):
    """The keys of a phase of every dual encoder."""

    learning_rate: float = Field(3e-3, gt=0)
    schedule: Literal[Schedule, "step"] = "cosine"
    """Learning-rate schedule over the phase: cosine and linear go from learning_rate down to final_fraction of it; step
    multiplies it by gamma after every step_epochs."""
    step_epochs: Annotated[int, Only("schedule", "step")] = Field(5, ge=1)
    """Number of epochs after which the learning rate is multiplied by gamma."""
    gamma: Annotated[float, Only("schedule", "step")] = Field(0.5, gt=0, le=1)
    batch_images: Annotated[int, Only("batch_pairs", None)] = Field(64, ge=2)
    """Images per batch. Each image is compared with the captions of all images of the batch."""
    captions_per_image: Annotated[int | None, Only("batch_pairs", None)] = Field(None, ge=1)
    """Captions sampled per image; null: all captions."""
    objective: Literal["info_nce", "max_hinge", "sigmoid", "hinge_rank", "pooled"] = "info_nce"
    """info_nce: contrastive loss in both directions; max_hinge: hinge loss on the hardest negative (VSE++); sigmoid:
    binary classification of every pair (SigLIP); hinge_rank: hinge loss on every negative caption, where captions have
    length 1 and images keep their length (DeViSE); pooled: equation 4 of the BERT-ViT paper."""
    shift: Annotated[float | None, Only("objective", "pooled")] = None
    """rho of equation 4; null: the smallest value with which the loss of such a batch is never negative."""
    margin: Annotated[float, Only("objective", "max_hinge", "hinge_rank")] = Field(0.2, gt=0)
    """Margin of the hinge."""
    hard_negatives: Literal["second", "hardest"] | None = None
    """Negatives with an additional loss, which is added to the objective. second: the second of the two most similar
    captions (the paper); hardest: the most similar negative caption; null: none."""

    @model_validator(mode="after")
    def _mines_by_cosine(self) -> Self:
        if self.objective == "hinge_rank" and self.hard_negatives is not None:
            raise ValueError("hard_negatives are mined by cosine, but hinge_rank uses dot products; remove one")
        return self


class RetrieverPhaseConfig(DualEncoderPhaseConfig):
    mixup: float = Field(0.0, ge=0)
    """Parameter of Beta(mixup, mixup), from which the mixing share of two pairs of a batch is drawn; 0: no mixup. Text
    kind features only."""
    structure: float = Field(0.0, ge=0)
    """Weight of the STRUCTURE loss, which keeps the neighbours that images and captions have in the spaces of their
    frozen encoders; 0: none. Text kinds features and features_and_words only."""


class DualEncoderTrainingConfig(TrainingConfig):
    """The keys of the training of every dual encoder."""

    phases: Sequence[DualEncoderPhaseConfig]
    pairs: int | None = Field(None, ge=2)
    """Number of training pairs to sample (null: all)."""
    pairs_seed: Annotated[int, Only("pairs")] = Field(0, ge=0)
    """Seed of this sample. With the same seed, a larger sample contains the smaller one."""
    sweep: SweepConfig | None = None
    select_by: Literal["loss", "rsum"] = "rsum"
    """Select the best epoch by validation loss, or by the sum of Recall@1, 5 and 10 of both directions."""

    @model_validator(mode="after")
    def _a_sweep_is_trained(self) -> Self:
        if self.sweep is not None and not self.phases:
            raise ValueError("sweep needs a training phase")
        return self


class RetrieverTrainingConfig(DualEncoderTrainingConfig):
    phases: Annotated[
        list[RetrieverPhaseConfig],
        BeforeValidator(one_or_more, json_schema_input_type=RetrieverPhaseConfig | list[RetrieverPhaseConfig]),
    ] = [RetrieverPhaseConfig(epochs=10)]
    """Training phases, in order; one phase needs no list. Empty if head is none on both sides, because such a retriever
    has no weights to learn."""
    validation_images: int | None = Field(10_000, ge=2)
    """Number of images of the validation split to validate on, drawn at random; null: all."""


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
        raw_image = self.image.head == "none" and self.image.pool in ("cls", "cls_mean")
        return not (raw_image and isinstance(self.text, FeaturesTextConfig) and self.text.head == "none")

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
