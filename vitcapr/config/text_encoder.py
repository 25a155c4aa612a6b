"""Which network reads the captions, and how its features are stored."""

from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section
from vitcapr.config.features import Dtype


class TextEncoderConfig(Section):
    """A text encoder is data: BERT and its relatives, T5, the text half of CLIP, SigLIP or BLIP-2, or word vectors."""

    source: str
    """A hub id, or a local folder (looked up under VITCAPR_BACKBONES first); for word_vectors a file in GloVe's format
    (looked up under VITCAPR_DATA first)."""
    revision: str = "main"
    """The hub revision; a commit makes the experiment reproducible."""
    output: Literal["hidden", "aligned", "word_vectors"] = "hidden"
    """hidden: the last layer, pooled (of a BLIP-2 with T5, T5's encoder); aligned: the vector compared with an image's
    (CLIP, SigLIP, BLIP-2 with contrastive projections); word_vectors: the mean of the vectors of the caption's words,
    for which pool, dtype and max_length do not count."""
    pool: Literal["mean", "cls", "last"] = "mean"
    """The vector of a caption, for output: hidden: the mean over its tokens, or that of the first or the last one."""
    dtype: Dtype = "auto"
    """Arithmetic of the forward pass; auto: bfloat16 where the hardware has it, float32 elsewhere."""
    store_dtype: Literal["float16", "float32"] = "float16"
    """What is written to the store."""
    max_length: int = Field(64, ge=4)
    """Longest caption in the encoder's own tokens, its special ones included; longer ones are cut."""
    batch: int = Field(64, ge=1)
    """Captions in one forward pass."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
