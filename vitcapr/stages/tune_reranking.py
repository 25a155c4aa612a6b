from typing import Annotated, Any, Self

from pydantic import Field

from vitcapr.config.base import StageSettings
from vitcapr.config.captioner import WeighingConfig
from vitcapr.config.parts import AnyReranker
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Device, In, Out, stage
from vitcapr.progress import Reporter


class TuneRerankingSettings(StageSettings):
    scorer: AnyReranker = Field("cosine", validate_default=True)
    weighing: WeighingConfig = WeighingConfig()
    language: str = "en"

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        reranking = config.rerankings[wildcards.reranking]
        return cls(scorer=reranking.scorer, weighing=reranking.weighing, language=config.text.language)


@stage()
def tune_reranking(
    captions: Annotated[In[kinds.CaptionsFile], "captions.json of the validation split, with candidates"],
    features: In[kinds.FeaturesFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    retriever: In[kinds.ModelFolder],
    settings: TuneRerankingSettings,
    report: Reporter,
    weight: Out[kinds.WeightFile],
    augmented_views: list[In[kinds.FeaturesFile]] | None = None,
    text_encoder: Annotated[str | None, "Hub id or folder of the retriever's text encoder; else its card's"] = None,
    device: Device = "auto",
) -> None:
    """Choose the weight of a retriever in reranking, on the validation split."""
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.retrieval.reranking import RetrieverFiles
    from vitcapr.retrieval.tuning import tune_weight

    files = RetrieverFiles(retriever, vocabulary, features, augmented_views or [], text_encoder)
    data, how = read_manifest(manifest), {"language": settings.language, "device": device}
    tune_weight(captions, data, files, settings.scorer, settings.weighing, report, **how).write(weight)
