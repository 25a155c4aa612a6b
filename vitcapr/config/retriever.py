"""Configuration of a retriever, a dual encoder for image-text retrieval, and of its training."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from vitcapr.config.base import Section
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


def _check_depth(head: Head, depth: int) -> None:
    if depth > 1 and head != "residual":
        raise ValueError(f"depth needs head residual, not {head}")


class ImageTowerConfig(Section):
    pool: Literal["cls", "cls_mean", "attention", "attention_mean"] = "cls_mean"
    """cls: the CLS vector (the paper); cls_mean: CLS and the mean of the patches; attention: the patches, pooled by
    learned queries; attention_mean: attention and the mean of the patches."""
    queries: int = Field(4, ge=1)
    """Number of learned queries that pool the patches (attention and attention_mean only)."""
    head: Head = "residual"
    """linear (ViTCap-R); matrix: linear without bias (DeViSE); mlp: linear, GELU, linear; gated: a gated linear unit
    (SAIL); residual: layer norm, a linear layer and residual two-layer perceptrons; none: nothing is learned, and a
    fixed rotation changes the width to embedding_dim if they differ."""
    hidden_dim: int = Field(512, ge=1)
    """Hidden width of an mlp, gated or residual head."""
    depth: int = Field(1, ge=1)
    """Number of residual perceptrons in sequence (head residual only)."""
    standardise: bool = False
    """Standardise every dimension with the mean and standard deviation of the training images (pool cls only)."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on the pooled features and inside an mlp, gated or residual head."""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.standardise and self.pool != "cls":
            raise ValueError(f"standardise needs pool cls, not {self.pool}")
        _check_depth(self.head, self.depth)
        return self


class TextTowerConfig(Section):
    kind: Literal["lstm", "bilstm", "bag", "features", "features_and_words"] = "bag"
    """lstm (the paper) or bilstm over the words; bag: the mean of learned word embeddings; features: features of a text
    encoder, computed once; features_and_words: features and bag together."""
    encoder: str | None = None
    """Name of an entry of text_encoders (features and features_and_words only)."""
    head: Head = "residual"
    """Same choices as for the image head (not for lstm and bilstm)."""
    word_dim: int = Field(256, ge=1)
    """Width of the word embedding (not for features)."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the words that training leaves out of the bag, at random (bag and features_and_words only)."""
    word_vectors: str | None = None
    """Name of an entry of word_vectors that initialises the word embedding (not for features)."""
    pool: Literal["last", "mean", "max"] = "last"
    """last: the state after the last word; mean, max: over the states of all words (lstm and bilstm only)."""
    max_length: int = Field(35, ge=3)
    """Maximum caption length in tokens, start and end included; longer captions are truncated (not for features)."""
    hidden_dim: int = Field(256, ge=1)
    """Width of the LSTM state, or hidden width of an mlp, gated or residual head."""
    depth: int = Field(1, ge=1)
    """Number of residual perceptrons in sequence (not for lstm and bilstm)."""
    standardise: bool = False
    """Standardise every dimension of the text features with the mean and standard deviation of the training
    captions."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on word vectors and pooled states, or on text features and inside an mlp, gated or residual
    head."""

    @model_validator(mode="after")
    def _encoder_goes_with_features(self) -> Self:
        if self.reads_features and self.encoder is None:
            raise ValueError(f"kind {self.kind} needs encoder; set it to the name of an entry of text_encoders")
        if not self.reads_features and self.encoder is not None:
            raise ValueError(f"encoder needs kind features or features_and_words, not {self.kind}")
        if self.kind == "features" and self.word_vectors is not None:
            raise ValueError("word_vectors need a kind that reads words, not features")
        if not self.reads_features and self.standardise:
            raise ValueError(f"standardise needs kind features or features_and_words, not {self.kind}")
        if not self.has_head and self.head != type(self).model_fields["head"].default:
            raise ValueError(f"head needs kind features, bag or features_and_words, not {self.kind}")
        if self.word_dropout and self.kind not in ("bag", "features_and_words"):
            raise ValueError(f"word_dropout needs kind bag or features_and_words, not {self.kind}")
        if self.has_head and self.kind != "features" and self.head == "none":
            raise ValueError(f"{self.kind} learns word embeddings, so its head cannot be none")
        _check_depth(self.head, self.depth)
        return self

    @property
    def has_head(self) -> bool:
        """Whether it has a head of the kinds that images have."""
        return self.kind not in ("lstm", "bilstm")

    @property
    def reads_features(self) -> bool:
        return self.kind in ("features", "features_and_words")


class RetrieverPhaseConfig(PhaseConfig):
    learning_rate: float = Field(3e-3, gt=0)
    schedule: Schedule = "cosine"
    batch_images: int = Field(64, ge=2)
    """Images per batch. Each image is compared with the captions of all images of the batch."""
    captions_per_image: int | None = Field(None, ge=1)
    """Captions sampled per image; null: all captions."""
    objective: Literal["info_nce", "max_hinge", "sigmoid", "hinge_rank"] = "info_nce"
    """info_nce: contrastive loss in both directions; max_hinge: hinge loss on the hardest negative (VSE++); sigmoid:
    binary classification of every pair (SigLIP); hinge_rank: hinge loss on every negative caption, where captions have
    length 1 and images keep their length (DeViSE)."""
    margin: float = Field(0.2, gt=0)
    """Margin of max_hinge and hinge_rank."""
    hard_negatives: Literal["second", "hardest"] | None = None
    """Negatives with an additional loss. second: the second of the two most similar captions (the paper); hardest: the
    most similar negative caption; null: none."""
    hard_negative_weight: float = Field(1.0, gt=0)
    """Weight of the hard-negative loss, which is added to the objective."""
    mixup: float = Field(0.0, ge=0)
    """Parameter of Beta(mixup, mixup), from which the mixing share of two pairs of a batch is drawn; 0: no mixup. Text
    kind features only."""
    structure: float = Field(0.0, ge=0)
    """Weight of the STRUCTURE loss, which keeps the neighbours that images and captions have in the spaces of their
    frozen encoders; 0: none. Text kinds features and features_and_words only."""
    structure_levels: int = Field(1, ge=1)
    """Number of levels of neighbours that it compares: 1 is the neighbours, 2 also those of the neighbours."""

    @model_validator(mode="after")
    def _mines_by_cosine(self) -> Self:
        if self.objective == "hinge_rank" and self.hard_negatives is not None:
            raise ValueError("hard_negatives are mined by cosine, but hinge_rank uses dot products; remove one")
        return self


class RetrieverTrainingConfig(TrainingConfig):
    phases: Annotated[
        list[RetrieverPhaseConfig],
        BeforeValidator(one_or_more, json_schema_input_type=RetrieverPhaseConfig | list[RetrieverPhaseConfig]),
    ] = [RetrieverPhaseConfig(epochs=10)]
    """Training phases, in order; one phase needs no list. Empty if head is none on both sides, because such a retriever
    has no weights to learn."""
    pairs: int | None = Field(None, ge=2)
    """Number of training pairs to sample (null: all)."""
    pairs_seed: int = Field(0, ge=0)
    """Seed of this sample. With the same seed, a larger sample contains the smaller one."""
    sweep: SweepConfig | None = None
    queue: int = Field(0, ge=0)
    """Number of past captions among which hard negatives are mined, in addition to the batch; 0: the batch alone."""
    queue_momentum: float = Field(0.99, ge=0, lt=1)
    """Momentum of the text tower that embeds the queue (MoCo); with a queue only."""
    optimizer: Literal["adam", "adamw"] = "adam"
    select_by: Literal["loss", "rsum"] = "rsum"
    """Select the best epoch by validation loss, or by the sum of Recall@1, 5 and 10 of both directions."""

    @model_validator(mode="after")
    def _a_queue_is_mined(self) -> Self:
        if self.queue and all(phase.hard_negatives is None for phase in self.phases):
            raise ValueError("queue needs a phase with hard_negatives")
        if self.sweep is not None and not self.phases:
            raise ValueError("sweep needs a training phase")
        return self


class RetrieverConfig(TrainedConfig):
    backbone: str
    """Name of an entry of backbones."""
    layer: Layer = None
    """Hidden layer of the backbone to read, also of its augmented views; one of the backbone's layers; null: the output
    of the backbone."""
    augmented_views: list[str] = []
    """Names of backbones that give augmented views: the same network on changed pictures (mirror). Training samples one
    view per image; the embedding of an image is the mean over its views."""
    embedding_dim: int = Field(256, ge=2)
    """Width of the space that images and texts share."""
    temperature: float = Field(0.07, ge=0.01, le=1)
    """Temperature of info_nce; the initial value if it is learned."""
    learn_temperature: bool = True
    bias: float = -10.0
    """Initial value of the learned bias (sigmoid objective only)."""
    members: int = Field(1, ge=1)
    """Number of dual encoders that are trained together, from different weights; the cosine of an image and a text is
    the mean of theirs."""
    image: ImageTowerConfig = ImageTowerConfig()
    text: TextTowerConfig = TextTowerConfig()
    training: RetrieverTrainingConfig = RetrieverTrainingConfig()

    @property
    def learns(self) -> bool:
        """Whether at least one tower has weights to learn."""
        raw_image = self.image.head == "none" and self.image.pool in ("cls", "cls_mean")
        return not (raw_image and self.text.kind == "features" and self.text.head == "none")

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
        if self.text.kind == "features_and_words" and self.training.queue:
            raise ValueError("queue does not work with text kind features_and_words")
        if self.members > 1 and self.training.queue:
            raise ValueError("queue needs members 1")
        if self.members > 1 and not self.learns:
            raise ValueError("with head none on both sides nothing is learned; set members to 1")
        if self.text.kind != "features" and any(phase.mixup for phase in phases):
            raise ValueError(f"mixup needs text kind features, not {self.text.kind}")
        if not self.text.reads_features and any(phase.structure for phase in phases):
            raise ValueError(f"structure needs text kind features or features_and_words, not {self.text.kind}")
        return self


class EmbedConfig(Section):
    """Settings of embedding; execution only."""

    batch: int = Field(256, ge=1)
    """Images, and captions, per forward pass."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
