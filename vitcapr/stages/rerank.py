"""Captions of a split in a new order: likelihood and a retriever's cosine together."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from vitcapr.config.base import StageSettings
from vitcapr.errors import UserError
from vitcapr.formats.kinds import (
    CaptionsFile,
    FeaturesFile,
    ManifestFile,
    ModelFolder,
    VocabularyFile,
    WeightFile,
)
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter


class RerankSettings(StageSettings):
    """A weight that was chosen stands in its file, with what it was chosen with."""

    weight: float | None = Field(None, ge=0, le=1)
    length_penalty: float = Field(1.0, ge=0)
    """Of the likelihood; with a fixed weight only."""
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        reranking = config.rerankings[wildcards.reranking]
        fixed = {} if reranking.weight is None else {"length_penalty": reranking.weighing.length_penalty}
        return cls(weight=reranking.weight, device=config.embed.device, **fixed)


@stage(device="device")
def rerank(
    candidates: Annotated[In[CaptionsFile], "captions.json of the split, with candidates"],
    features: In[FeaturesFile],
    manifest: In[ManifestFile],
    vocabulary: In[VocabularyFile],
    retriever: Annotated[In[ModelFolder], "Folder of the retriever, the one that a chosen weight is for"],
    split: Split,
    settings: RerankSettings,
    report: Reporter,
    captions: Out[CaptionsFile],
    weight: In[WeightFile] | None = None,
    augmented_views: list[In[FeaturesFile]] | None = None,
    text_encoder: Annotated[str | None, "Hub id or folder of the retriever's text encoder; else its card's"] = None,
) -> None:
    """Reorder the candidates of every image of a split."""
    import numpy as np

    from vitcapr.decoding.rerank import Terms, read_n_best, write_reordered
    from vitcapr.formats.embeddings import RerankingWeight
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.retrieval.cosines import digest_of, split_cosines

    if (weight is None) == (settings.weight is None):
        raise UserError("a reranking has either a fixed weight or a file with a chosen one", remedy="give one of them")
    share, length_penalty = settings.weight, settings.length_penalty
    if weight is not None:
        tuned = RerankingWeight.read(weight)
        if tuned.retriever != digest_of(retriever):
            raise UserError(
                f"the weight in {weight} was chosen for another retriever",
                where=retriever,
                remedy="run tune_reranking again",
            )
        share, length_penalty = tuned.weight, tuned.length_penalty
    assert share is not None
    data = read_manifest(manifest)
    found = read_n_best(candidates, data.images["image_id"].iloc[data.rows(split)].tolist())
    cosines = split_cosines(
        [n_best.image_id for n_best in found],
        [n_best.captions for n_best in found],
        data,
        features=features,
        augmented_views=augmented_views,
        vocabulary=vocabulary,
        retriever=retriever,
        text_encoder=text_encoder,
        device=settings.device,
        reporter=report,
    )
    terms = Terms(found, cosines, length_penalty)
    scores = list(terms.scores(share))
    write_reordered(captions, found, scores, of_candidates=[{"cosine": of_image} for of_image in cosines])
    changed = int(np.count_nonzero(terms.best(share)))
    report.line(f"rerank: weight {share:g}, another caption for {changed} of {len(found)} images")
