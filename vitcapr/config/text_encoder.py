"""Configuration of text encoders and of their feature stores."""

from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section
from vitcapr.config.features import Dtype
from vitcapr.config.paths import UserPath


class TextEncoderConfig(Section):
    """A text encoder: BERT or a similar model, T5, the text encoder of CLIP, SigLIP or BLIP-2, or word vectors."""

    source: UserPath
    """A hub id or a local folder (looked up under VITCAPR_BACKBONES first); for word_vectors, a file in GloVe's format
    (looked up under VITCAPR_DATA first)."""
    revision: str = "main"
    """Revision on the hub; give a commit to make the experiment reproducible."""
    output: Literal["hidden", "aligned", "word_vectors"] = "hidden"
    """hidden: the last layer, pooled (BLIP-2 with T5: of T5's encoder); aligned: the vector of the joint image-text
    space (CLIP, SigLIP, BLIP-2 with contrastive projections); word_vectors: the mean over the word vectors of the
    caption, which ignores pool, dtype and max_length."""
    pool: Literal["mean", "cls", "last"] = "mean"
    """Pooling of the tokens (output: hidden only): the mean, the first token (cls) or the last token."""
    dtype: Dtype = "auto"
    """Data type of the forward pass; auto: bfloat16 if the hardware supports it, else float32."""
    store_dtype: Literal["float16", "float32"] = "float16"
    """Data type of the stored features."""
    max_length: int = Field(64, ge=4)
    """Maximum caption length in the encoder's tokens, special tokens included; longer captions are truncated."""
    batch: int = Field(64, ge=1)
    """Captions per forward pass."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
