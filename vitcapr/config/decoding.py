"""How captions are written, word by word."""

from typing import Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section


class DecodingConfig(Section):
    beam_size: int = Field(5, ge=1)
    """1 is greedy decoding."""
    max_length: int = Field(35, ge=2)
    """Most words in a caption, the end token not counted."""
    min_length: int = Field(1, ge=0)
    """Fewest words before the end token is allowed; 0 allows captions without a word, which cannot be scored."""
    length_penalty: float = Field(0.0, ge=0)
    """A hypothesis is ranked by its log-probability divided by length ** length_penalty; 0 does not normalise."""
    block_ngram: int = Field(0, ge=0)
    """No n-gram of this size may occur twice in a caption; 0 allows all."""
    n_best: int = Field(1, ge=1)
    """Candidates kept for each image; at most beam_size."""
    attention: bool = False
    """Keep the attention over the patches for every word of the best caption."""
    batch_images: int = Field(64, ge=1)
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @model_validator(mode="after")
    def _numbers_agree(self) -> Self:
        if self.n_best > self.beam_size:
            raise ValueError(f"n_best {self.n_best} is more than beam_size {self.beam_size}")
        if self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is more than max_length {self.max_length}")
        return self
