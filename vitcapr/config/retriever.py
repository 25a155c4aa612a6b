"""A dual encoder for image-text retrieval and how it is trained."""

from typing import Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section

Head = Literal["linear", "residual"]


class ImageTowerConfig(Section):
    pool: Literal["cls", "cls_mean", "attention"] = "cls"
    """CLS alone (the paper), CLS beside the mean patch, or CLS beside patches pooled by learned queries."""
    queries: int = Field(4, ge=1)
    """Learned queries, each of which pools the patches in its own way; attention only."""
    head: Head = "linear"
    """linear (the paper), or residual: layer norm, a linear layer, and a two-layer perceptron added to it."""
    hidden_dim: int = Field(512, ge=1)
    """Width of the residual head's perceptron."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """On the pooled features, and inside a residual head."""


class TextTowerConfig(Section):
    kind: Literal["lstm", "bilstm", "features"] = "lstm"
    """lstm (the paper) or bilstm over the words, or features of a text encoder, computed once."""
    encoder: str | None = None
    """The name of an entry of text_encoders; features only."""
    head: Head = "linear"
    """As in image; features only."""
    word_dim: int = Field(256, ge=1)
    """Width of the word embedding; lstm and bilstm only."""
    word_vectors: str | None = None
    """The name of an entry of word_vectors to start the embedding from; lstm and bilstm only."""
    pool: Literal["last", "mean", "max"] = "last"
    """The state after the last word, or the mean or maximum over the words; lstm and bilstm only."""
    max_length: int = Field(35, ge=3)
    """Longest caption in tokens, start and end included; longer ones are cut. lstm and bilstm only."""
    hidden_dim: int = Field(256, ge=1)
    """Width of the LSTM's state, or of the residual head's perceptron."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """On the word vectors and pooled states, or on the text features and inside a residual head."""

    @model_validator(mode="after")
    def _encoder_goes_with_features(self) -> Self:
        if self.kind == "features" and self.encoder is None:
            raise ValueError("kind features needs encoder, the name of an entry of text_encoders")
        if self.kind != "features" and self.encoder is not None:
            raise ValueError(f"encoder is for kind features, not for {self.kind}")
        if self.kind == "features" and self.word_vectors is not None:
            raise ValueError("word_vectors are for kinds lstm and bilstm, not for features")
        return self


class RetrieverPhaseConfig(Section):
    """A stretch of training with settings of its own; the weights and the optimiser's state carry over."""

    epochs: int = Field(ge=1)
    batch_images: int = Field(64, ge=2)
    """Images in a batch; each is compared with the captions of all others."""
    captions_per_image: int | None = Field(None, ge=1)
    """Captions drawn at random of each image; null takes all."""
    learning_rate: float = Field(1e-3, gt=0)
    schedule: Literal["constant", "cosine", "linear", "step"] = "constant"
    """How the learning rate moves: cosine and linear from learning_rate down to final_fraction of it, step by gamma."""
    final_fraction: float = Field(0.0, ge=0, le=1)
    warmup_steps: int = Field(0, ge=0)
    step_epochs: int = Field(5, ge=1)
    """step only: the learning rate is multiplied by gamma every so many epochs."""
    gamma: float = Field(0.5, gt=0, le=1)
    objective: Literal["info_nce", "max_hinge"] = "info_nce"
    """info_nce: choose the true one among the batch, both ways; max_hinge: beat the hardest wrong one (VSE++)."""
    margin: float = Field(0.2, gt=0)
    """max_hinge only."""
    hard_negatives: Literal["second", "hardest"] | None = None
    """Wrong captions that count once more: second is the paper's rule (of the two most similar captions the second),
    hardest the most similar wrong one."""
    hard_negative_weight: float = Field(1.0, gt=0)
    """Of the mined loss, added to the objective; with hard_negatives only."""


class RetrieverTrainingConfig(Section):
    phases: list[RetrieverPhaseConfig] = Field([RetrieverPhaseConfig(epochs=10)], min_length=1)
    queue: int = Field(0, ge=0)
    """Past captions that hard negatives are mined among, besides the batch; 0 mines in the batch alone."""
    queue_momentum: float = Field(0.99, ge=0, lt=1)
    """How much of the text tower that embeds the queue stays at each step (MoCo); with a queue only."""
    optimizer: Literal["adam", "adamw"] = "adam"
    weight_decay: float = Field(0.0, ge=0)
    clip_norm: float | None = Field(5.0, gt=0)
    """Largest norm of the gradient; None leaves it as it is."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Arithmetic of the matrix products; auto: bfloat16 where the hardware has it. Similarities stay float32."""
    ema_decay: float = Field(0.0, ge=0, lt=1)
    """Decay of the moving average of the weights that is validated and kept; 0 keeps the weights themselves."""
    patience: int | None = Field(None, ge=1)
    """Stop after so many epochs without a better validation score; None never stops early."""
    select_by: Literal["loss", "rsum"] = "loss"
    """The best epoch by validation loss, or by the sum of Recall@1, 5 and 10 of both directions."""
    save_every_steps: int = Field(200, ge=1)
    """How often the state from which training continues is written."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    processes: int = Field(1, ge=1)
    """Processes that share every batch, under torchrun; on GPUs one each. Nothing is re-run for it, as for device."""

    @model_validator(mode="after")
    def _a_queue_is_mined(self) -> Self:
        if self.queue and all(phase.hard_negatives is None for phase in self.phases):
            raise ValueError("queue is for hard negatives, and no phase has any")
        return self


class RetrieverConfig(Section):
    backbone: str
    """The name of an entry of backbones."""
    seed: int | None = Field(None, ge=0)
    """Of its first weights and of its training; None takes the experiment's."""
    embedding_dim: int = Field(256, ge=2)
    """Of the space that images and texts share."""
    temperature: float = Field(0.07, ge=0.01, le=1)
    """What similarities are divided by in info_nce; where learning starts if it is learned."""
    learn_temperature: bool = False
    image: ImageTowerConfig = ImageTowerConfig()
    text: TextTowerConfig = TextTowerConfig()
    training: RetrieverTrainingConfig = RetrieverTrainingConfig()


class TrainRetrieverSettings(Section):
    """What the stage ``train_retriever`` reads."""

    retriever: RetrieverConfig
    seed: int = Field(0, ge=0)
    """The experiment's; one of the retriever's own comes before it."""

    @property
    def own_seed(self) -> int:
        return self.seed if self.retriever.seed is None else self.retriever.seed


class EmbedConfig(Section):
    """How embeddings are computed; none of this changes what they are."""

    batch: int = Field(256, ge=1)
    """Images, and captions, embedded at a time."""
    device: Literal["auto", "cpu", "cuda"] = "auto"


class EmbedSettings(Section):
    """What the stage ``embed`` reads."""

    embed: EmbedConfig = EmbedConfig()
