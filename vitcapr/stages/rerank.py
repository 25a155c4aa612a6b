from typing import Annotated

from vitcapr.config.captioner import RerankSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Device, In, Out, Split, stage
from vitcapr.progress import Reporter


@stage()
def rerank(
    candidates: Annotated[In[kinds.CaptionsFile], "captions.json of the split, with candidates"],
    features: In[kinds.FeaturesFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    retriever: Annotated[In[kinds.ModelFolder], "Folder of the retriever, the one that a chosen weight is for"],
    split: Split,
    settings: RerankSettings,
    report: Reporter,
    captions: Out[kinds.CaptionsFile],
    weight: In[kinds.WeightFile] | None = None,
    augmented_views: list[In[kinds.FeaturesFile]] | None = None,
    text_encoder: Annotated[str | None, "Hub id or folder of the retriever's text encoder; else its card's"] = None,
    device: Device = "auto",
) -> None:
    """Reorder the candidates of every image of a split by likelihood and a retriever's cosine together."""
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.retrieval.reranking import RetrieverFiles, rerank_split

    files = RetrieverFiles(retriever, vocabulary, features, augmented_views or [], text_encoder)
    rerank_split(candidates, read_manifest(manifest), split, files, settings, weight, captions, device, report)
