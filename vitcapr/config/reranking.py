"""How the n best captions of a decoding are put in a new order."""

from typing import Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section


class WeighingConfig(Section):
    """What the weight of the retriever is chosen by. It is chosen on the validation split."""

    select_by: Literal["cider", "meteor"] = "cider"
    """The score of the validation split that decides."""
    length_penalty: float = Field(1.0, ge=0)
    """The likelihood term is log-probability / length ** length_penalty, as in a decoding; with the decoding's own
    length_penalty, weight 0 keeps its order."""
    grid_steps: int = Field(20, ge=1)
    """Weights are tried from 0 to 1 in so many equal steps."""


class RerankingConfig(Section):
    decoding: str
    """The name of an entry of decodings that keeps at least two candidates, n_best."""
    by: Literal["retriever", "oracle"] = "retriever"
    """retriever: likelihood and cosine; oracle: the candidate that the references like best, which is a ceiling and no
    result, so that its name must contain 'oracle'."""
    retriever: str | None = None
    """The name of an entry of retrievers."""
    weight: float | None = Field(None, ge=0, le=1)
    """A fixed weight of the retriever: 1 orders by the cosine alone, as ViTCap-R does; null chooses it by weighing."""
    weighing: WeighingConfig = WeighingConfig()

    @model_validator(mode="after")
    def _a_retriever_where_one_is_needed(self) -> Self:
        if self.by == "retriever" and self.retriever is None:
            raise ValueError("by retriever needs the name of a retriever")
        if self.by == "oracle" and self.retriever is not None:
            raise ValueError("by oracle asks no retriever; leave out its name")
        if self.by == "oracle" and self.weight is not None:
            raise ValueError("by oracle has no weight; leave it out")
        return self
