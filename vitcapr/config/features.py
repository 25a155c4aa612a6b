"""Configuration of what images and captions are made into: features, pixels, words and word vectors."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from vitcapr.config.base import ADOPTED, CHECKPOINT, DATA, Name, Only, Section, StageSettings, UserPath, find_data
from vitcapr.loader import files_of_extensions, parts

Dtype = Literal["auto", "float32", "bfloat16", "float16"]

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[("auto", "vit", "cnn", "timm", "image-text", "blip-2", "open-clip", *parts("ENCODER"))]

CHUNK = 64
"""Images per chunk of a store with patches or decoded pictures, by default."""
EXECUTION_ONLY = frozenset({"features.tasks", "features.batch", "features.reuse", "features.content_check"})
"""The settings of extraction that do not change a store."""
TRAINED = "trained"
"""The source and the name of the backbone that the experiment trains."""


class BackboneConfig(Section):
    """A backbone: a network on pictures of transformers, timm or open_clip: a ViT, a CNN, the image encoder of CLIP."""

    source: Annotated[UserPath, CHECKPOINT]
    """A hub id, a local folder (looked up under VITCAPR_BACKBONES first), a name of timm (timm:NAME), 'trained': the
    ViT of the demo, or 'store:NAME': features that were pulled or imported."""
    revision: str = "main"
    """Revision on the hub; give a commit to make the experiment reproducible."""
    kind: Kind = "auto"
    """Type of the network; auto: from the checkpoint's configuration. The name of a plugin that reads it."""
    output: Literal["hidden", "aligned", "qformer"] = "hidden"
    """hidden: cls and patches; aligned: the vector of the joint image-text space (CLIP, SigLIP and others, BLIP-2 with
    contrastive projections); qformer: the query tokens of BLIP-2, which have no position in the picture."""
    pool: Annotated[Literal["mean", "max", "first"], Only("output", "qformer")] = "mean"
    """Pooling of the query tokens into one vector."""
    dtype: Dtype = "auto"
    """Data type of the forward pass; auto: bfloat16 if the hardware supports it, else float32."""
    layers: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = None
    """Hidden layers of a ViT to store beside its output, counted from 1, such as [6, 9]: arrays cls_6, patches_6, cls_9
    and patches_9, from the same forward pass (output: hidden only). null: none."""
    patches: Literal["all", "none"] | Annotated[int, Field(ge=1)] = "all"
    """Patches to store: all; none, so that CLS alone is stored; or the side of a square grid whose cells are means of
    patches, such as 7 (output: hidden only)."""
    store_dtype: Literal["float16", "float32", "int8"] = "float16"
    """Data type of the stored features; int8: patches in half the bytes of float16, which are read as float16."""
    image_size: int | None = Field(None, ge=16)
    """Image size in pixels per side; null: the checkpoint's size."""
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] | None = None
    """Interpolation for resizing; null: the checkpoint's."""
    mirror: bool = False
    """Mirror the pictures, as an augmented view for a retriever. Captions that say left or right become wrong."""

    @model_validator(mode="after")
    def _keys_fit_the_source_and_the_output(self) -> Self:
        for key in ("mirror", "layers", "patches"):
            if (value := getattr(self, key)) != type(self).model_fields[key].default:
                if self.is_adopted:
                    raise ValueError(f"{key} needs pictures, but {self.source} holds features")
                if key != "mirror" and self.output != "hidden":
                    raise ValueError(f"{key}: {value} needs output: hidden, not {self.output}")
        if self.layers is not None and self.layers != sorted(set(self.layers)):
            raise ValueError(f"layers has to increase: {sorted(set(self.layers))}")
        return self

    def user_files(self) -> Iterator[tuple[str, Path]]:
        yield from () if self.source == TRAINED else super().user_files()

    @property
    def is_adopted(self) -> bool:
        """Whether the features come from a sealed store that was pulled or imported (``source: store:...``)."""
        return self.source.startswith(ADOPTED)

    def same_network(self, other: "BackboneConfig") -> bool:
        """Return whether both definitions give features of the same space and shape.

        Two stores count as the same.
        """
        if self.is_adopted or other.is_adopted:
            return self.is_adopted and other.is_adopted
        keys = ("source", "revision", "output", "pool", "image_size", "patches")
        return all(getattr(self, key) == getattr(other, key) for key in keys)


class FeaturesConfig(Section):
    """Division of the extraction, and products of the stores; every key but chunk is execution only for extraction."""

    tasks: int = Field(1, ge=1)
    """Number of independent jobs that fill one store."""
    chunk: int | None = Field(None, ge=1)
    """Images per chunk of a store; null: 1,024 for a backbone with patches: none or output: aligned, else 64. 64
    decoded pictures of 224 x 224 take 9.6 MB."""
    batch: int = Field(32, ge=1)
    """Images per forward pass. On a CPU 16 or 32 is fastest, on a GPU more."""
    reuse: bool = True
    """Copy the features of pictures and captions that another store holds, if weights, preprocessing, arithmetic and
    code are the same. false: compute all."""
    content_check: bool = True
    """Compare features that are extracted or adopted with the photographs, and with the captions. false: they belong
    together, whatever their content says."""


class Terms(Section):
    """Licence and source of a data set; None: not known."""

    licence: str | None = None
    source: str | None = None

    @classmethod
    def of(cls, data: Any) -> "Terms":
        """Return the terms of the data set: those that its file states, else those of a ``terms.yaml``."""
        name: str = data.dataset
        if name == "pairs":
            name = {"flickr8k": "flickr8k-cn"}.get(data.pairs.source, data.pairs.source)
        known = _known_terms().get(name, {})
        given = {"licence": data.licence, "source": data.source}
        return cls.model_validate({**known, **{key: value for key, value in given.items() if value is not None}})


@cache
def _known_terms() -> Any:
    files = (Path(__file__).with_name("terms.yaml"), *files_of_extensions("terms.yaml"))
    texts = (file.read_text(encoding="utf-8") for file in files)
    return {name: terms for text in texts for name, terms in yaml.safe_load(text).items()}


class ExtractSettings(StageSettings):
    """The settings of the stages that extract the features of images, or decode the pictures for a backbone."""

    backbone: BackboneConfig
    features: FeaturesConfig = FeaturesConfig()
    terms: Terms = Terms()

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        backbone = config.backbones[wildcards.backbone]
        return cls(backbone=backbone, features=config.features, terms=Terms.of(config.data))


class TextEncoderConfig(Section):
    """A text encoder: transformers, sentence-transformers, the text part of a model such as CLIP, or word vectors."""

    source: Annotated[UserPath, CHECKPOINT]
    """A hub id or a local folder (looked up under VITCAPR_BACKBONES first); for word_vectors, a file in GloVe's format
    (looked up under VITCAPR_DATA first); 'store:NAME': features of the captions that were pulled or imported."""
    revision: str = "main"
    """Revision on the hub; give a commit to make the experiment reproducible."""
    output: Literal["hidden", "aligned", "word_vectors"] = "hidden"
    """hidden: the last layer, pooled (BLIP-2 with T5: of T5's encoder); aligned: the vector of the joint image-text
    space (CLIP, SigLIP and others, BLIP-2 with contrastive projections); word_vectors: the mean over the word vectors
    of the caption."""
    pool: Annotated[Literal["auto", "mean", "cls", "last"], Only("output", "hidden")] = "auto"
    """Pooling of the tokens: the mean, the first token (cls) or the last token. auto: with modules.json, what
    sentence-transformers (an extra) computes; else the mean."""
    prompt: Annotated[str | None, Only("output", "hidden", "aligned")] = None
    """Text before each caption, such as "query: ", or the name of a prompt of the checkpoint; null: its default prompt,
    else none."""
    dtype: Annotated[Dtype, Only("output", "hidden", "aligned")] = "auto"
    """Data type of the forward pass; auto: bfloat16 if the hardware supports it, else float32."""
    store_dtype: Literal["float16", "float32"] = "float16"
    """Data type of the stored features."""
    max_length: Annotated[int, Only("output", "hidden", "aligned")] = Field(64, ge=4)
    """Maximum caption length in the encoder's tokens, special tokens included; longer captions are truncated."""

    def user_files(self) -> Iterator[tuple[str, Path]]:
        yield from [("source", find_data(self.source))] if self.output == "word_vectors" else super().user_files()

    @model_validator(mode="after")
    def _a_store_has_no_settings(self) -> Self:
        if self.is_adopted and (
            set_ := {name for name in self.canonical() if name != "source" and self._differs(name)}
        ):
            raise ValueError(f"{', '.join(sorted(set_))} without effect: {self.source} holds features")
        return self

    def _differs(self, key: str) -> bool:
        return bool(getattr(self, key) != type(self).model_fields[key].default)

    @property
    def is_adopted(self) -> bool:
        """Whether the features come from a sealed store that was pulled or imported (``source: store:...``)."""
        return self.source.startswith(ADOPTED)


class NormaliseConfig(Section):
    """Cleaning of a caption before it is split into words. Cleaning always lower-cases."""

    non_letters: Literal["space", "remove", "keep"] = "remove"
    """Replace punctuation and numerals by a space, remove them, or keep them."""
    drop_one_letter: bool = False
    """Remove words of one letter, such as 'a'."""


class VocabularyConfig(Section):
    """Selection of the captioner's words."""

    min_count: int = Field(5, ge=1)
    """Keep words that occur at least so often."""
    splits: list[Literal["train", "validation", "test", "none"]] = ["train"]
    """Splits whose words are counted. Other values than [train] leak test data; the protocol of every score then says
    so."""
    unknown: bool = True
    """Replace rare words by <unk>; false: remove them from the caption."""


class WordVectorsConfig(Section):
    """A word-vector text file in GloVe's format."""

    path: Annotated[UserPath, DATA]
    dimension: int = Field(50, ge=1)


class TextConfig(Section):
    language: Name = "en"
    """Language of the captions to train on and to score."""
    normalise: NormaliseConfig = NormaliseConfig()
    vocabulary: VocabularyConfig = VocabularyConfig()
