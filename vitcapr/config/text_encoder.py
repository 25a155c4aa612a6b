"""Which network reads the captions, and how its features are stored."""

from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section
from vitcapr.config.features import Dtype


class TextEncoderConfig(Section):
    """A text encoder is data: any BERT-family checkpoint that transformers' AutoModel opens."""

    source: str
    """A hub id, or a local folder (looked up under VITCAPR_BACKBONES first)."""
    revision: str = "main"
    """The hub revision; a commit makes the experiment reproducible."""
    pool: Literal["mean", "cls"] = "mean"
    """The vector of a caption: the mean over its tokens, or that of the first one."""
    dtype: Dtype = "auto"
    """Arithmetic of the forward pass; auto: bfloat16 where the hardware has it, float32 elsewhere."""
    store_dtype: Literal["float16", "float32"] = "float16"
    """What is written to the store."""
    max_length: int = Field(64, ge=4)
    """Longest caption in the encoder's own tokens, its special ones included; longer ones are cut."""
    batch: int = Field(64, ge=1)
    """Captions in one forward pass."""
    device: Literal["auto", "cpu", "cuda"] = "auto"


class ExtractTextSettings(Section):
    """What the stage ``extract_text`` reads."""

    text_encoder: TextEncoderConfig
