"""Configuration of a captioner and of its training."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from vitcapr.config.base import CHECKPOINT, Entry, Only, Section, UserPath
from vitcapr.config.training import Layer, PhaseConfig, Schedule, TrainedConfig, TrainingConfig, one_or_more


class CaptionerPhaseConfig(PhaseConfig):
    learning_rate: float = Field(3e-3, gt=0)
    warmup_steps: int | None = Field(None, ge=0)
    """Steps in which the learning rate rises from 0; null: a tenth of the steps of the phase, at most 100."""
    batch_images: Annotated[int | None, Only("batch_pairs", None)] = Field(None, ge=1)
    """Images per batch. Every image comes with all its captions: 32 images give about 160 captions. null: 32, or with
    fewer than 256 training images an eighth of them, at least 4."""
    schedule: Schedule = "cosine"
    max_length: int = Field(35, ge=3)
    """Maximum caption length in tokens, start and end included; longer captions are truncated."""
    objective: Literal["cross_entropy", "self_critical"] = "cross_entropy"
    """self_critical maximises the CIDEr-D of sampled captions; use it in a late phase with a small learning rate."""
    samples: Annotated[int, Only("objective", "self_critical")] = Field(5, ge=2)
    """Captions sampled per image."""
    temperature: Annotated[float, Only("objective", "self_critical")] = Field(1.0, gt=0)
    """Sampling temperature. Below 1, samples are closer to the captions of beam search."""


class CaptionerTrainingConfig(TrainingConfig):
    phases: Annotated[
        list[CaptionerPhaseConfig],
        BeforeValidator(one_or_more, json_schema_input_type=CaptionerPhaseConfig | list[CaptionerPhaseConfig]),
    ] = Field([CaptionerPhaseConfig(epochs=4)], min_length=1)
    """Training phases, in order; one phase needs no list."""
    optimizer: Literal["adam", "adamw"] = "adam"
    ema_decay: float = Field(0.99, ge=0, lt=1)
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of each target's probability that is spread over the vocabulary (cross_entropy only)."""
    select_by: Literal["loss", "cider"] = "loss"
    """Select the best epoch by validation loss, or by CIDEr of greedy captions on the validation split."""

    @model_validator(mode="after")
    def _the_best_epoch_can_be_any(self) -> Self:
        if self.select_by == "loss" and any(phase.objective == "self_critical" for phase in self.phases):
            raise ValueError(
                "select_by loss would never select an epoch of a self_critical phase, which trades "
                "cross-entropy for CIDEr; set select_by to cider"
            )
        return self


class CaptionerConfig(TrainedConfig):
    """The keys that all architectures have."""

    chosen_by = "architecture"
    attends: ClassVar[bool] = True
    """Whether the model attends to patches at every word. Attention figures, roll-out and grounding need this."""

    architecture: str
    """baseline and patch_attention: the LSTM captioners of ViTCap-R; transformer: a Transformer decoder over the
    patches; language_model: a pretrained language model that reads CLS and patches as a prefix."""
    backbone: Annotated[str, Entry("backbones")]
    """Name of an entry of backbones."""
    layer: Layer = None
    """Hidden layer of the backbone to read, one of its layers; null: the output of the backbone."""
    start_from: str | None = None
    """Name of another captioner of the same architecture; training starts from its weights."""
    training: CaptionerTrainingConfig = CaptionerTrainingConfig()

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays of a feature store that the model reads."""
        return ("patches", "cls") if self.attends else ("cls",)


class WordCaptionerConfig(CaptionerConfig):
    """The keys of the architectures that are trained from nothing on the words of the vocabulary."""

    embedding_dim: int = Field(128, ge=1)
    """Width of the word embedding; of a transformer, also of its layers."""
    word_vectors: Annotated[str | None, Entry("word_vectors")] = None
    """Name of an entry of word_vectors that initialises the word embedding. The embedding is trained further."""
    hidden_dim: int = Field(256, ge=1)
    """Width of the LSTM state; of a transformer, the hidden width of its feed-forward sublayers."""
    dropout: float = Field(0.2, ge=0, lt=1)


class BaselineConfig(WordCaptionerConfig):
    attends = False

    architecture: Literal["baseline"] = "baseline"


class PatchAttentionConfig(WordCaptionerConfig):
    architecture: Literal["patch_attention"] = "patch_attention"
    attention_dim: int = Field(128, ge=1)
    scoring: Literal["tanh", "relu", "bilinear"] = "bilinear"
    """Attention score. tanh: equation 2 of the ViTCap-R paper; relu: Linear - ReLU - Linear, as in the paper's training
    section; bilinear: word times patch, a fraction of the arithmetic."""
    init_from_cls: bool = True
    """Start the LSTM from the CLS vector; false: from zeros."""
    output_dim: int | None = Field(None, ge=1)
    """Width of a hidden layer between [context, h] and the vocabulary; null: no hidden layer (ViTCap-R on MS COCO)."""
    output_activation: Literal["tanh", "relu"] = "tanh"
    """Activation of that hidden layer; relu: ViTCap-R on Flickr8k."""

    @property
    def arrays(self) -> tuple[str, ...]:
        return ("patches", "cls") if self.init_from_cls else ("patches",)


class TransformerConfig(WordCaptionerConfig):
    architecture: Literal["transformer"] = "transformer"
    layers: int = Field(2, ge=1)
    """Number of layers."""
    heads: int = Field(4, ge=1)
    """Number of attention heads. embedding_dim must be a multiple of it."""

    @property
    def arrays(self) -> tuple[str, ...]:
        return ("patches",)

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.embedding_dim % self.heads or self.embedding_dim % 2:
            raise ValueError(f"embedding_dim {self.embedding_dim} must be even and a multiple of heads, {self.heads}")
        return self


class LanguageModelConfig(Section):
    """A pretrained causal language model of transformers with its tokenizer."""

    source: Annotated[UserPath, CHECKPOINT]
    """A hub id or a local folder (looked up under VITCAPR_BACKBONES first)."""
    revision: str = "main"
    """Revision on the hub; give a commit to make the experiment reproducible."""


class PrefixConfig(Section):
    """What the language model reads of an image: CLS, then the patches, each through the projector:
    Linear - GELU - Linear to the width of the language model, as in LLaVA 1.5."""

    grid: int | None = Field(None, ge=0)
    """Pool the patches to grid x grid means; null: every patch; 0: CLS alone."""


class LanguageModelCaptionerConfig(CaptionerConfig):
    architecture: Literal["language_model"] = "language_model"
    language_model: LanguageModelConfig
    prefix: PrefixConfig = PrefixConfig()
    train: Literal["projector", "lora", "all"] = "lora"
    """The projector alone, with low-rank adapters of every linear layer (rank 16, Hu et al. 2021; they need peft: pip
    install 'vitcapr[language-model]'), or with all weights. What is not trained is kept in the arithmetic's data type,
    and not stored with the captioner."""
    gradient_checkpointing: bool = False
    """Compute the activations again in the backward pass: less memory, more time."""

    @property
    def attends(self) -> bool:  # type: ignore[override]
        return self.prefix.grid != 0
