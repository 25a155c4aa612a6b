"""Configuration of reranking."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Entry, Only, Section, StageSettings
from vitcapr.config.captioner import LanguageModelConfig


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
