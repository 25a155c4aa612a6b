"""Configuration of caption decoding."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Only, Section


class SamplingConfig(Section):
    temperature: float = Field(1.0, gt=0)
    """What the logits are divided by. Below 1, samples are closer to the captions of beam search."""
    top_k: int | None = Field(None, ge=1)
    """Draw from the top_k most probable words; null: from all."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Draw from the fewest words that hold this share of the probability; 1: from all."""
    seed: int = Field(0, ge=0)
    """Seed of the samples. Those of an image depend on it and on the image's row, not on the other images."""


class DecodingConfig(Section):
    beam_size: Annotated[int, Only("sampling", None)] = Field(5, ge=1)
    """Beam width; 1 is greedy decoding."""
    sampling: SamplingConfig | None = None
    """Draw n_best captions at random; null: search with a beam. Equal samples of an image count once."""
    max_length: int = Field(35, ge=2)
    """Maximum number of words in a caption; the end token is not counted."""
    min_length: int = Field(1, ge=1)
    """Minimum number of words before the end token is allowed."""
    length_penalty: float = Field(0.0, ge=0)
    """Hypotheses are ranked by log-probability / length ** length_penalty; 0: no length normalisation."""
    block_ngram: int = Field(0, ge=0)
    """Size of the n-grams that may occur only once in a caption; 0: no blocking."""
    n_best: int = Field(1, ge=1)
    """Candidates stored per image; at most beam_size. With sampling, captions drawn per image."""
    attention: bool = False
    """Store the attention over the patches for every word of the best caption."""
    batch_images: int = Field(64, ge=1)
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"

    @property
    def method(self) -> str:
        """How captions are generated, in a few words for people."""
        if self.sampling is not None:
            return f"{self.n_best} samples"
        return "greedy" if self.beam_size == 1 else f"beam {self.beam_size}"

    @model_validator(mode="after")
    def _numbers_agree(self) -> Self:
        if self.sampling is None and self.n_best > self.beam_size:
            raise ValueError(f"n_best {self.n_best} is larger than beam_size {self.beam_size}")
        if self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is larger than max_length {self.max_length}")
        return self
