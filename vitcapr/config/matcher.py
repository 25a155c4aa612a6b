"""A ViT and BERT-family text models fine-tuned together into one space, and how they are trained."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section, StageSettings
from vitcapr.config.names import Name
from vitcapr.config.pixels import AugmentationConfig
from vitcapr.config.training import PhaseConfig, SharedTrainingConfig, TrainedConfig


class TokenizerConfig(Section):
    """A WordPiece tokenizer trained on the captions of the training split."""

    languages: list[Name] = Field(["en"], min_length=1)
    """Whose captions it is trained on."""
    pieces: int = Field(8000, ge=100)
    """Most pieces it may have, special ones included."""
    min_count: int = Field(2, ge=1)
    """A piece is seen at least so often."""


class MatcherImageConfig(Section):
    backbone: str
    """The name of an entry of backbones, whose checkpoint the image tower starts from."""
    pool: Literal["cls", "mean"] = "cls"
    """The CLS vector (the paper), or the mean over the patches."""
    top_layers: int | None = Field(None, ge=0)
    """How many of the upper layers are trained; null trains all of the model, 0 none of it."""


class MatcherTextConfig(Section):
    """A text tower and the languages that it reads."""

    languages: list[Name] = Field(["en"], min_length=1)
    source: str | None = None
    """A hub id or a local folder (looked up under VITCAPR_BACKBONES first); null: a small BERT from scratch."""
    revision: str = "main"
    pool: Literal["cls", "mean"] = "cls"
    """The CLS vector (the paper), or the mean over the tokens."""
    max_length: int = Field(48, ge=4)
    """Longest caption in the tower's own tokens, special ones included; longer ones are cut."""
    top_layers: int | None = Field(None, ge=0)
    """As for the image tower."""
    tags: bool = False
    """Add an embedding of each word's part of speech to the embeddings of its tokens."""
    tokenizer: str | None = None
    """The name of an entry of tokenizers; from scratch only."""
    layers: int = Field(4, ge=1)
    """From scratch only, as are the next three."""
    hidden_dim: int = Field(256, ge=8)
    heads: int = Field(4, ge=1)
    dropout: float = Field(0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _a_tokenizer_goes_with_scratch(self) -> Self:
        if (self.source is None) != (self.tokenizer is not None):
            raise ValueError("a text tower has either source, a checkpoint, or tokenizer, to start from scratch")
        if self.source is None and self.top_layers is not None:
            raise ValueError("a text tower from scratch is trained whole; leave out top_layers")
        if self.hidden_dim % self.heads:
            raise ValueError(f"hidden_dim {self.hidden_dim} is not a multiple of heads {self.heads}")
        return self


class MatcherPhaseConfig(PhaseConfig):
    batch_images: int = Field(20, ge=2)
    """Images in a batch (the paper: 20); each is compared with the captions of all others."""
    captions_per_image: int | None = Field(1, ge=1)
    """Captions drawn at random of each image, of all languages together; null takes all."""
    learning_rate: float = Field(1e-4, gt=0)
    """Of the projections; for encoders see encoder_rate and layer_decay."""
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    objective: Literal["info_nce", "pooled"] = "info_nce"
    """info_nce: choose the true one among the batch, both ways; pooled: the paper's equation 4."""
    shift: float | None = None
    """pooled only: rho of equation 4; null takes the least that lets no batch of this size have a negative loss."""


class MatcherTrainingConfig(SharedTrainingConfig):
    phases: list[MatcherPhaseConfig] = Field([MatcherPhaseConfig(epochs=5)], min_length=1)
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    """adam has the paper's moments, 0.9 and 0.999; sgd has no momentum."""
    encoder_rate: float = Field(1.0, gt=0, le=1)
    """Pretrained encoders learn at this share of the learning rate; projections and encoders from scratch at all."""
    layer_decay: float = Field(1.0, gt=0, le=1)
    """Each layer of a pretrained encoder learns by this factor slower than the one above it."""
    augmentation: AugmentationConfig | None = None
    """null shows every picture as it is."""
    chunk: int | None = Field(None, ge=1)
    """Images, and captions, that a tower computes at a time; the loss is still of the whole batch (gradient caching).
    Less memory, one forward pass more. null computes the batch at once."""
    checkpoint_layers: bool = False
    """Keep a layer's input alone and compute the rest again on the way back: less memory, more time."""
    compile: bool = False
    """Compile the towers with torch.compile."""
    epoch_batches: int | None = Field(None, ge=1)
    """Batches between two validations; null: all of the training split."""
    validation_images: int | None = Field(None, ge=2)
    """Validate on the first so many images; null takes all."""
    select_by: Literal["loss", "rsum"] = "rsum"
    """The best epoch by validation loss, or by the sum of Recall@1, 5 and 10 of both directions."""


class MatcherConfig(TrainedConfig):
    image: MatcherImageConfig
    text: dict[Name, MatcherTextConfig] = Field(min_length=1)
    """Text towers by name; each language is read by one of them."""
    embedding_dim: int | None = Field(None, ge=2)
    """Width of the linear projections to the shared space; null has none (the paper), for towers of equal width."""
    temperature: float = Field(0.1, ge=0.01, le=1)
    """What similarities are divided by in the loss (the paper: 0.1); where learning starts if it is learned."""
    learn_temperature: bool = False
    training: MatcherTrainingConfig = MatcherTrainingConfig()

    @model_validator(mode="after")
    def _a_language_has_one_tower(self) -> Self:
        languages = self.languages
        if len(languages) != len(set(languages)):
            raise ValueError("a language is read by more than one text tower")
        return self

    @property
    def languages(self) -> list[str]:
        return [language for tower in self.text.values() for language in tower.languages]


class TrainMatcherSettings(StageSettings):
    """What an untrained matcher is made from, and how it is trained."""

    matcher: MatcherConfig
    seed: int = Field(0, ge=0)
    """The experiment's; one of the matcher's own comes before it."""
    revision: str = "main"
    """Of the image tower's checkpoint."""

    @classmethod
    def of(cls, config: Any, wildcards: Any) -> Self:
        matcher = config.matchers[wildcards.matcher]
        revision = config.backbones[matcher.image.backbone].revision
        return cls(matcher=matcher, seed=matcher.seed_in(config.seed), revision=revision)


NOT_DECIDING = ("checkpoint_layers", "chunk", "compile", "device", "processes", "save_every_steps")
"""Keys of a matcher's training that say how it is computed, and change nothing of the result but rounding."""
