"""Configuration of caption decoding, and of what reorders results: reranking, and query banks against hubness."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Entry, Only, Section, StageSettings
from vitcapr.config.captioner import LanguageModelConfig


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


class WeighingConfig(Section):
    """Selection of the retriever's weight by CIDEr of the validation split."""

    tolerance: float = Field(0.0, ge=0)
    """How far below the best score the selected weight may lie. The largest such weight is selected: it
    gives captions of more different words, which differ more from image to image. 0: the weight of the best score."""
    length_penalty: float = Field(0.0, ge=0)
    """The likelihood term is log-probability / length ** length_penalty, as in a decoding. With the decoding's own
    length_penalty, weight 0 keeps the order of the decoding."""
    grid_steps: int = Field(20, ge=1)
    """Number of equal steps between weight 0 and weight 1."""
    language_model: LanguageModelConfig | None = None
    """A language model that sees no image: the likelihood P(t | image) becomes P(t | image) / P(t) ** alpha (Lin et al.
    2023, arXiv 2306.01879), with the best alpha of 0, 0.25, 0.5, 0.75 and 1."""


class RerankingConfig(Section):
    decoding: Annotated[str, Entry("decodings")]
    """Name of an entry of decodings with n_best of at least 2."""
    by: Literal["retriever", "oracle"] = "retriever"
    """retriever: likelihood and cosine; oracle: the candidate that scores best against the references. An oracle is an
    upper bound, so its name must contain 'oracle'."""
    retriever: Annotated[str | None, Only("by", "retriever"), Entry("retrievers")] = None
    """Name of an entry of retrievers."""
    weight: Annotated[float | None, Only("by", "retriever")] = Field(None, ge=0, le=1)
    """Fixed weight of the retriever; 1: the cosine alone, as in ViTCap-R; null: selected by weighing."""
    weighing: WeighingConfig = WeighingConfig()

    @model_validator(mode="after")
    def _a_retriever_where_one_is_needed(self) -> Self:
        if self.by == "retriever" and self.retriever is None:
            raise ValueError("by: retriever needs the key retriever")
        return self


class RerankSettings(StageSettings):
    """The settings of the stage ``rerank``. A chosen weight stands in its file, with what it was chosen with."""

    weight: float | None = Field(None, ge=0, le=1)
    length_penalty: float = Field(1.0, ge=0)
    """Of the likelihood; with a fixed weight only."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        reranking = config.rerankings[wildcards.reranking]
        fixed = {} if reranking.weight is None else {"length_penalty": reranking.weighing.length_penalty}
        return cls(weight=reranking.weight, **fixed)
