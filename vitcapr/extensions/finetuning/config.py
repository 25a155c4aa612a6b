"""Configuration of dual encoders whose image and text encoders are fine-tuned on pictures and captions."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from vitcapr.config.base import CHECKPOINT, Entry, Name, Only, Section, StageSettings, UserPath
from vitcapr.config.dual_encoder import DualEncoderConfig
from vitcapr.config.training import DualEncoderPhaseConfig, DualEncoderTrainingConfig, Schedule, one_or_more


class TagsConfig(Section):
    """Part-of-speech tags of the captions, for models that read them in addition to the words."""

    tagger: Literal["auto", "hanlp", "jieba"] = "auto"
    """hanlp: a downloaded model for both languages; jieba: jieba for Chinese and rules for English; auto: HanLP if it
    is installed."""


class TokenizerConfig(Section):
    """A WordPiece tokenizer trained on the captions of the training split."""

    languages: list[Name] = Field(["en"], min_length=1)
    """Languages of the captions that it is trained on."""
    vocab_size: int = Field(8000, ge=100)
    """Number of pieces, special tokens included."""


class AugmentationConfig(Section):
    """Random changes of the training pictures. A limit of 0 switches a change off."""

    probability: float = Field(0.5, ge=0, le=1)
    """Probability of rotation, brightness, hue and blur, each drawn independently."""
    rotation: float = Field(15.0, ge=0, le=180)
    """Maximum angle in degrees, in both directions; the picture is mirrored at its edges to fill the corners."""
    flip: float = Field(0.5, ge=0, le=1)
    """Probability of a left-right flip. Captions that say left or right become wrong."""
    brightness: float = Field(0.2, ge=0, lt=1)
    """Maximum relative change of the pixel values."""
    hue: float = Field(0.05, ge=0, le=0.5)
    """Maximum rotation of the hue, in turns of the colour circle. Keep it small, because captions name colours."""
    blur: float = Field(1.0, ge=0, le=10)
    """Maximum standard deviation of the Gaussian blur, in pixels."""


class FinetuningPhaseConfig(DualEncoderPhaseConfig):
    learning_rate: float = Field(1e-4, gt=0)
    """Learning rate of the projections; encoder_rate and layer_decay scale it for the encoders."""
    schedule: Literal[Schedule, "step"] = "constant"
    batch_images: Annotated[int, Only("batch_pairs", None)] = Field(20, ge=2)
    """Images per batch (the paper: 20). Each image is compared with the captions of all images of the batch."""
    captions_per_image: Annotated[int | None, Only("batch_pairs", None)] = Field(1, ge=1)
    """Captions sampled per image, over all languages together; null: all captions."""


class FinetuningConfig(DualEncoderTrainingConfig):
    phases: Annotated[
        list[FinetuningPhaseConfig],
        BeforeValidator(one_or_more, json_schema_input_type=FinetuningPhaseConfig | list[FinetuningPhaseConfig]),
    ] = Field([FinetuningPhaseConfig(epochs=5)], min_length=1)
    """Training phases, in order; one phase needs no list."""
    encoder_rate: float = Field(1.0, gt=0, le=1)
    """Factor on the learning rate of pretrained encoders. Projections and encoders from scratch use the full rate."""
    layer_decay: float = Field(1.0, gt=0, le=1)
    """Learning-rate factor from each layer of a pretrained encoder to the layer below it."""
    augmentation: AugmentationConfig | None = None
    """Random changes of the training pictures; null: none."""
    chunk: int | None = Field(None, ge=1)
    """Images, and captions, per forward pass of a tower (gradient caching); the loss is still over the whole batch. It
    saves memory and costs a second forward pass. null: the whole batch in one pass."""
    epoch_batches: int | None = Field(None, ge=1)
    """Batches per epoch, that is between two validations; null: the whole training split."""
    validation_images: int | None = Field(None, ge=2)
    """Number of images to validate on, from the start of the validation split; null: all."""


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


class FinetunedDualEncoderConfig(DualEncoderConfig):
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
