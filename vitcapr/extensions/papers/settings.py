"""Papers: their published numbers beside the scores, and their figures."""

from collections.abc import Iterator
from typing import Any, Literal

from vitcapr.config.base import Section
from vitcapr.experiment.paths import FIGURES
from vitcapr.loader import Hooks

PCA = f"{FIGURES}/embeddings/{{retriever}}/{{split}}/pca"
BARS = f"{FIGURES}/recall/{{split}}/bars"
PAIR_LENGTHS = f"{FIGURES}/pairs/lengths"


class Run(Section):
    information: bool = False
    """Measure entropy and mutual information of the embeddings of dual encoders; of fine-tuned ones before training,
    too. Not on the training split."""
    paper: Literal["vitcap-r", "blip2-flickr30k", "bert-vit"] | None = None
    """The paper whose published numbers the tables show beside the scores."""


def _information(experiment: Any) -> list[str]:
    used, folder = experiment.models, f"{experiment.root}/metrics/information"
    models = used.dual_encoders if experiment.config.run.information else []
    splits = [split for split in used.splits if split != "train"]
    return [f"{folder}/{model}/{split}/metrics.json" for model in models for split in splits]


def followed_paper(config: Any) -> str | None:
    """Return the paper that an experiment follows."""
    paper: str | None = config.run.paper
    return paper


def _in_folder_of_paper(experiment: Any, file: str) -> list[str]:
    paper = followed_paper(experiment.config)
    return [f"{experiment.root}/tables/{paper}/{file.format(paper=paper)}"] if paper else []


def _tables(experiment: Any) -> list[str]:
    claims = [f"{experiment.root}/tables/claims.md"] if experiment.config.data.dataset == "pairs" else []
    return [*_in_folder_of_paper(experiment, "{paper}.md"), *claims]


def _page(experiment: Any) -> list[str]:
    return _in_folder_of_paper(experiment, "page_section.json")


def _figures(experiment: Any) -> Iterator[tuple[str, dict[str, str]]]:
    paper, retrieval = followed_paper(experiment.config), experiment.retrieval
    # Two of many components show little: PCA is drawn for the papers, which print it.
    for wildcards in retrieval.retrievals if paper else ():
        yield PCA, wildcards
    if paper == "blip2-flickr30k" and retrieval.recall_scores:
        yield from ((BARS, {"split": split}) for split in experiment.models.splits)
    if experiment.config.data.dataset == "pairs":
        yield PAIR_LENGTHS, {}


def before_training(experiment: Any, name: str) -> tuple[list[str], list[str]]:
    """Return the features of images and of captions that a retriever reads; none unless it reads both."""
    retriever, features = experiment.config.retrievers.get(name), experiment.features
    if retriever is None or retriever.text.text_encoder is None:
        return [], []
    return [features.sealed(retriever.backbone)], features.text_features(retriever.text.text_encoder)


HOOKS = Hooks(scores=_information, figures=_figures, tables=_tables, page=_page)
