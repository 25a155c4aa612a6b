"""Captions of a split in a new order: likelihood and a retriever's cosine together."""

from typing import Annotated, Any, Literal, Self

from vitcapr.config.base import StageSettings
from vitcapr.declaration.kinds import (
    CaptionsFile,
    FeaturesFile,
    ManifestFile,
    ModelFolder,
    VocabularyFile,
    WeightFile,
)
from vitcapr.declaration.stage import In, Out, Split, stage
from vitcapr.errors import UserError
from vitcapr.progress import Reporter


class RerankSettings(StageSettings):
    """The rest of what the weight was chosen with stands in its file."""

    device: Literal["auto", "cpu", "cuda"] = "auto"

    @classmethod
    def of(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        return cls(device=config.embed.device)


@stage(device="device")
def rerank(
    candidates: Annotated[In[CaptionsFile], "captions.json of the split, with candidates"],
    weight: In[WeightFile],
    features: In[FeaturesFile],
    manifest: In[ManifestFile],
    vocabulary: In[VocabularyFile],
    retriever: Annotated[In[ModelFolder], "Folder of the retriever that the weight was chosen for"],
    split: Split,
    settings: RerankSettings,
    report: Reporter,
    captions: Out[CaptionsFile],
    views: list[In[FeaturesFile]] | None = None,
    text_encoder: Annotated[str | None, "Hub id or folder of the retriever's text encoder; else its card's"] = None,
) -> None:
    """Reorder the candidates of every image of a split."""
    import numpy as np

    from vitcapr.artefacts.manifest import read_manifest
    from vitcapr.artefacts.weight import RerankingWeight
    from vitcapr.building.cosines import digest_of, split_cosines
    from vitcapr.decoding.rerank import Terms, read_n_best, write_reordered

    tuned = RerankingWeight.read(weight)
    if tuned.retriever != digest_of(retriever):
        raise UserError(
            f"the weight in {weight} was chosen for another retriever",
            where=retriever,
            remedy="run tune_reranking again",
        )
    data = read_manifest(manifest)
    found = read_n_best(candidates, data.images["image_id"].iloc[data.rows(split)].tolist())
    cosines = split_cosines(
        found,
        data,
        features=features,
        views=views,
        vocabulary=vocabulary,
        retriever=retriever,
        text_encoder=text_encoder,
        device=settings.device,
        reporter=report,
    )
    terms = Terms(found, cosines, tuned.length_penalty)
    scores = list(terms.scores(tuned.weight))
    write_reordered(captions, found, scores, of_candidates=[{"cosine": of_image} for of_image in cosines])
    changed = int(np.count_nonzero(terms.best(tuned.weight)))
    report.line(f"rerank: weight {tuned.weight:g}, another caption for {changed} of {len(found)} images")
