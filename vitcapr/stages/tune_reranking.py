"""The weight of a retriever in reranking, chosen on the validation split."""

from typing import Annotated

from vitcapr.config.reranking import TuneRerankingSettings
from vitcapr.formats.kinds import (
    CaptionsFile,
    FeaturesFile,
    ManifestFile,
    ModelFolder,
    VocabularyFile,
    WeightFile,
)
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage(device="device", execution_only={"metrics"})
def tune_reranking(
    captions: Annotated[In[CaptionsFile], "captions.json of the validation split, with candidates"],
    features: In[FeaturesFile],
    manifest: In[ManifestFile],
    vocabulary: In[VocabularyFile],
    retriever: In[ModelFolder],
    settings: TuneRerankingSettings,
    report: Reporter,
    weight: Out[WeightFile],
    augmented_views: list[In[FeaturesFile]] | None = None,
    text_encoder: Annotated[str | None, "Hub id or folder of the retriever's text encoder; else its card's"] = None,
) -> None:
    """Choose the weight of a retriever in reranking, on the validation split."""
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.retrieval.reranking import RetrieverFiles, tune_weight

    files = RetrieverFiles(retriever, vocabulary, features, augmented_views or [], text_encoder)
    tune_weight(captions, read_manifest(manifest), files, settings, report).write(weight)
