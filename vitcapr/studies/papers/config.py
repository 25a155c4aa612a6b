"""What a configuration says of papers."""

from typing import Any, Literal

from vitcapr.config.base import Section


class Run(Section):
    information: bool = False
    """Measure entropy and mutual information of the embeddings of retrievers and fine-tuned dual encoders; of the
    latter before training, too. Not on the training split."""
    paper: Literal["vitcap-r", "blip2-flickr30k", "bert-vit"] | None = None
    """The paper whose published numbers the tables show beside the scores."""


def followed_paper(config: Any) -> str | None:
    """The paper that an experiment follows."""
    paper: str | None = config.run.paper
    return paper
