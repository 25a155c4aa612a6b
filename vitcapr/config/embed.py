"""Configuration of how images and captions are embedded, by retrievers and by fine-tuned dual encoders."""

from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section


class EmbedConfig(Section):
    """Settings of embedding; execution only."""

    batch: int = Field(256, ge=1)
    """Images, and captions, per forward pass."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
