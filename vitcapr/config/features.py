"""Which network looks at the pictures, and how its features are stored."""

from typing import Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section

Dtype = Literal["auto", "float32", "bfloat16", "float16"]

ADOPTED = "store:"
"""What a source begins with that is a store and no network."""


class BackboneConfig(Section):
    """A backbone is data: a ViT or a CNN of transformers, or the image half of CLIP, SigLIP or BLIP-2."""

    source: str
    """A hub id, a local folder (looked up under VITCAPR_BACKBONES first), or 'trained' for the one this DAG trains."""
    revision: str = "main"
    """The hub revision; a commit makes the experiment reproducible."""
    kind: Literal["auto", "vit", "cnn", "clip", "siglip", "blip-2"] = "auto"
    """auto: by the checkpoint's own model_type. Named cnn or siglip, no roll-out is drawn of it, as it has none."""
    output: Literal["hidden", "aligned", "qformer"] = "hidden"
    """hidden: CLS (of a CNN: pooled output) and patches; aligned: the vector compared with a caption's (CLIP, SigLIP,
    BLIP-2 with contrastive projections); qformer: the query tokens of BLIP-2, which have no place in the picture."""
    pool: Literal["mean", "max", "first"] = "mean"
    """How the query tokens become one vector; only output: qformer asks."""
    dtype: Dtype = "auto"
    """Arithmetic of the forward pass; auto: bfloat16 where the hardware has it, float32 elsewhere."""
    store_dtype: Literal["float16", "float32"] = "float16"
    """What is written to the store."""
    image_size: int | None = Field(None, ge=16)
    """Pixels a side; None takes the checkpoint's own."""
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] | None = None
    """None takes the checkpoint's own."""
    mirror: bool = False
    """Pictures flipped left to right: a further view for a retriever. Captions that say left or right then lie."""

    @model_validator(mode="after")
    def _a_store_is_as_it_is(self) -> Self:
        if self.mirror and self.is_adopted:
            raise ValueError(f"mirror is for pictures, and {self.source} holds features of them")
        return self

    @property
    def is_adopted(self) -> bool:
        """Whether the features are in a sealed store that was pulled or imported: ``source: store:...``."""
        return self.source.startswith(ADOPTED)

    @property
    def rolls_out(self) -> bool:
        """Whether its attention can be rolled out, as far as the definition tells: not of a store, nor without CLS."""
        return not self.is_adopted and self.kind not in ("cnn", "siglip")

    def same_network(self, other: "BackboneConfig") -> bool:
        """Whether both give features of one space and shape, as far as their definitions tell; a store does not say."""
        if self.is_adopted or other.is_adopted:
            return self.is_adopted and other.is_adopted
        keys = ("source", "revision", "output", "pool", "image_size")
        return all(getattr(self, key) == getattr(other, key) for key in keys)


class FeaturesConfig(Section):
    """How extraction is cut up; none of this changes what is computed."""

    tasks: int = Field(1, ge=1)
    """Independent jobs that fill one store."""
    chunk: int = Field(64, ge=1)
    """Images in one chunk of the store."""
    batch: int = Field(32, ge=1)
    """Images in one forward pass; it must divide chunk. On a CPU 16 or 32 are fastest, on a GPU more."""
    device: Literal["auto", "cpu", "cuda"] = "auto"


class TrainedBackboneConfig(Section):
    """The small ViT that the DAG trains on pictures whose objects are known."""

    patch_size: int = Field(14, ge=4)
    hidden_size: int = Field(128, ge=16)
    layers: int = Field(3, ge=1)
    heads: int = Field(4, ge=1)
    epochs: int = Field(9, ge=1)
    batch: int = Field(32, ge=1)
    learning_rate: float = Field(3e-3, gt=0)
    seed: int = Field(0, ge=0)
