"""A dual encoder for image-text retrieval and how it is trained."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from vitcapr.config.base import Section
from vitcapr.config.training import PhaseConfig, SharedTrainingConfig, TrainedConfig

Head = Literal["none", "matrix", "linear", "mlp", "residual"]


def _check_depth(head: Head, depth: int) -> None:
    if depth > 1 and head != "residual":
        raise ValueError(f"depth is for head residual, not for {head}")


class ImageTowerConfig(Section):
    pool: Literal["cls", "cls_mean", "attention", "attention_mean"] = "cls"
    """CLS alone (the paper), or CLS beside the mean patch, patches pooled by learned queries, or both of these."""
    queries: int = Field(4, ge=1)
    """Learned queries, each of which pools the patches in its own way; attention and attention_mean only."""
    head: Head = "linear"
    """linear (ViTCap-R); matrix: linear without a bias (DeViSE); mlp: linear, GELU, linear; residual: layer norm, a
    linear layer, and a two-layer perceptron added to it; none: nothing is learnt, features pass through, or a fixed
    turn brings them to embedding_dim."""
    hidden_dim: int = Field(512, ge=1)
    """Width of the perceptrons of an mlp or residual head."""
    depth: int = Field(1, ge=1)
    """Perceptrons in a residual head, one after the other."""
    standardise: bool = False
    """Every dimension by the training images' mean and standard deviation; pool cls only."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """On the pooled features, and inside an mlp or residual head."""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.standardise and self.pool != "cls":
            raise ValueError(f"standardise is for pool cls, not for {self.pool}")
        _check_depth(self.head, self.depth)
        return self


class TextTowerConfig(Section):
    kind: Literal["lstm", "bilstm", "features", "features_and_words"] = "lstm"
    """lstm (the paper) or bilstm over the words; features of a text encoder, computed once; or these beside the mean of
    learned word embeddings."""
    encoder: str | None = None
    """The name of an entry of text_encoders; features and features_and_words only."""
    head: Head = "linear"
    """As in image; features and features_and_words only."""
    word_dim: int = Field(256, ge=1)
    """Width of the word embedding; not for features."""
    word_vectors: str | None = None
    """The name of an entry of word_vectors to start the embedding from; not for features."""
    pool: Literal["last", "mean", "max"] = "last"
    """The state after the last word, or the mean or maximum over the words; lstm and bilstm only."""
    max_length: int = Field(35, ge=3)
    """Longest caption in tokens, start and end included; longer ones are cut. Not for features."""
    hidden_dim: int = Field(256, ge=1)
    """Width of the LSTM's state, or of the perceptrons of an mlp or residual head."""
    depth: int = Field(1, ge=1)
    """As in image; features and features_and_words only."""
    standardise: bool = False
    """Every dimension of the text features by the training captions' mean and standard deviation."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """On the word vectors and pooled states, or on the text features and inside an mlp or residual head."""

    @model_validator(mode="after")
    def _encoder_goes_with_features(self) -> Self:
        if self.reads_features and self.encoder is None:
            raise ValueError(f"kind {self.kind} needs encoder, the name of an entry of text_encoders")
        if not self.reads_features and self.encoder is not None:
            raise ValueError(f"encoder is for kinds features and features_and_words, not for {self.kind}")
        if self.kind == "features" and self.word_vectors is not None:
            raise ValueError("word_vectors are for kinds that read words, not for features")
        if not self.reads_features and (self.standardise or self.head != "linear"):
            raise ValueError(f"head and standardise are for kinds features and features_and_words, not for {self.kind}")
        if self.kind == "features_and_words" and self.head == "none":
            raise ValueError("features_and_words learns its words, so its head cannot be none")
        _check_depth(self.head, self.depth)
        return self

    @property
    def reads_features(self) -> bool:
        return self.kind in ("features", "features_and_words")


class RetrieverPhaseConfig(PhaseConfig):
    batch_images: int = Field(64, ge=2)
    """Images in a batch; each is compared with the captions of all others."""
    captions_per_image: int | None = Field(None, ge=1)
    """Captions drawn at random of each image; null takes all."""
    schedule: Literal["constant", "cosine", "linear", "step"] = "constant"
    """How the learning rate moves: cosine and linear from learning_rate down to final_fraction of it, step by gamma."""
    step_epochs: int = Field(5, ge=1)
    """step only: the learning rate is multiplied by gamma every so many epochs."""
    gamma: float = Field(0.5, gt=0, le=1)
    objective: Literal["info_nce", "max_hinge", "sigmoid", "hinge_rank"] = "info_nce"
    """info_nce: choose the true one among the batch, both ways; max_hinge: beat the hardest wrong one (VSE++);
    sigmoid: is this pair a true one, asked of every pair (SigLIP); hinge_rank: beat every wrong caption, where an
    image's vector keeps its length and a caption's has length 1 (DeViSE)."""
    margin: float = Field(0.2, gt=0)
    """max_hinge and hinge_rank only."""
    hard_negatives: Literal["second", "hardest"] | None = None
    """Wrong captions that count once more: second is the paper's rule (of the two most similar captions the second),
    hardest the most similar wrong one."""
    hard_negative_weight: float = Field(1.0, gt=0)
    """Of the mined loss, added to the objective; with hard_negatives only."""
    mixup: float = Field(0.0, ge=0)
    """Pairs are mixed with others of the batch, by a share from Beta(mixup, mixup); 0 mixes none. Text kind features
    only."""

    @model_validator(mode="after")
    def _mines_by_cosine(self) -> Self:
        if self.objective == "hinge_rank" and self.hard_negatives is not None:
            raise ValueError("hard_negatives are mined by cosine, and hinge_rank compares dot products")
        return self


class SweepConfig(Section):
    """Trainings that differ in one number, of which the best on the validation split is kept."""

    learning_rate: list[float] = Field(min_length=1)
    """Of the first phase; those of further phases keep their ratio to it."""

    @field_validator("learning_rate")
    @classmethod
    def _rates_differ(cls, rates: list[float]) -> list[float]:
        if min(rates) <= 0 or len(set(rates)) < len(rates):
            raise ValueError("learning rates are above 0, and each stands there once")
        return rates


class RetrieverTrainingConfig(SharedTrainingConfig):
    phases: list[RetrieverPhaseConfig] = [RetrieverPhaseConfig(epochs=10)]
    """Empty for a retriever with head none on both sides, which has nothing to learn."""
    pairs: int | None = Field(None, ge=2)
    """So many captions of the training split, drawn at random, each with its image; None takes all."""
    pairs_seed: int = Field(0, ge=0)
    """Of that draw; a larger draw of the same seed holds the smaller one."""
    sweep: SweepConfig | None = None
    queue: int = Field(0, ge=0)
    """Past captions that hard negatives are mined among, besides the batch; 0 mines in the batch alone."""
    queue_momentum: float = Field(0.99, ge=0, lt=1)
    """How much of the text tower that embeds the queue stays at each step (MoCo); with a queue only."""
    optimizer: Literal["adam", "adamw"] = "adam"
    select_by: Literal["loss", "rsum"] = "loss"
    """The best epoch by validation loss, or by the sum of Recall@1, 5 and 10 of both directions."""

    @model_validator(mode="after")
    def _a_queue_is_mined(self) -> Self:
        if self.queue and all(phase.hard_negatives is None for phase in self.phases):
            raise ValueError("queue is for hard negatives, and no phase has any")
        if self.sweep is not None and not self.phases:
            raise ValueError("sweep is for trainings, and there is no phase")
        return self


class RetrieverConfig(TrainedConfig):
    backbone: str
    """The name of an entry of backbones."""
    views: list[str] = []
    """The names of further backbones, the same network on other views of the pictures (mirror): training draws one view
    of every image, and an image's embedding is the mean over all."""
    embedding_dim: int = Field(256, ge=2)
    """Of the space that images and texts share."""
    temperature: float = Field(0.07, ge=0.01, le=1)
    """What similarities are divided by in info_nce; where learning starts if it is learned."""
    learn_temperature: bool = False
    bias: float = -10.0
    """Where the learned bias of the sigmoid objective starts; sigmoid only."""
    image: ImageTowerConfig = ImageTowerConfig()
    text: TextTowerConfig = TextTowerConfig()
    training: RetrieverTrainingConfig = RetrieverTrainingConfig()

    @property
    def learns(self) -> bool:
        """Whether a tower has a weight to learn."""
        raw_image = self.image.head == "none" and self.image.pool in ("cls", "cls_mean")
        return not (raw_image and self.text.kind == "features" and self.text.head == "none")

    @model_validator(mode="after")
    def _views_differ(self) -> Self:
        seen = [self.backbone, *self.views]
        for name in seen:
            if seen.count(name) > 1:
                raise ValueError(f"backbone and views name '{name}' twice")
        return self

    @model_validator(mode="after")
    def _trains_what_it_can(self) -> Self:
        phases = self.training.phases
        if self.learns and not phases:
            raise ValueError("training.phases is empty, and a tower has weights to learn")
        if not self.learns and phases:
            raise ValueError("head none on both sides has nothing to learn; write training: {phases: []}")
        if self.text.kind == "features_and_words" and self.training.queue:
            raise ValueError("a queue is for text that is either words or features, not for features_and_words")
        if self.text.kind != "features" and any(phase.mixup for phase in phases):
            raise ValueError(f"mixup is for text of kind features, not for {self.text.kind}")
        return self


class EmbedConfig(Section):
    """How embeddings are computed; none of this changes what they are."""

    batch: int = Field(256, ge=1)
    """Images, and captions, embedded at a time."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
