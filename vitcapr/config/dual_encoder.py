"""Configuration of dual encoders on stored features."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, SerializeAsAny, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from vitcapr.config.base import Entry, Only, Section, with_default
from vitcapr.config.parts import AnyHead, Names
from vitcapr.config.training import Layer, RetrieverTrainingConfig, TrainedConfig
from vitcapr.loader import parts, sections_to_run

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


class DualEncoderConfig(TrainedConfig):
    """A dual encoder of any kind. Its embeddings are scored and compared."""

    @property
    def languages(self) -> Sequence[str] | None:
        """The languages of the captions that it reads; None: that of the experiment."""
        return None


class RetrieverConfig(DualEncoderConfig):
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


def ranked_sections() -> list[str]:
    """Return the sections of dual encoders, of the core and of extensions."""
    return ["retrievers", *sections_to_run(DualEncoderConfig)]
