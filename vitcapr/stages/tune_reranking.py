"""The weight of a retriever in reranking, chosen on the validation split."""

from typing import Annotated, Any, Literal, Self

from vitcapr.config.base import StageSettings
from vitcapr.config.metrics import MetricsConfig
from vitcapr.config.reranking import WeighingConfig
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

SPLIT = "validation"
"""Nothing is tuned on another."""


class TuneRerankingSettings(StageSettings):
    weighing: WeighingConfig = WeighingConfig()
    metrics: MetricsConfig = MetricsConfig()
    language: str = "en"
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        return cls(
            weighing=config.rerankings[wildcards.reranking].weighing,
            metrics=config.metrics,
            language=config.text.language,
            device=config.embed.device,
        )


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
    from vitcapr.decoding.rerank import Terms, choose_weight, read_n_best, weights
    from vitcapr.formats.embeddings import RerankingWeight
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.base import references_of
    from vitcapr.metrics.candidates import CandidateScores, scorer_of, tokenize_candidates
    from vitcapr.retrieval.cosines import digest_of, split_cosines

    weighing, timeout = settings.weighing, settings.metrics.scorer_timeout
    data = read_manifest(manifest)
    references = references_of(data, SPLIT, settings.language)
    found = read_n_best(captions, list(references))
    digest = digest_of(retriever)
    count = sum(len(n_best.candidates) for n_best in found)
    report.line(f"tune_reranking: {count} candidates of {len(found)} images by {weighing.select_by}")
    by_image = {n_best.image_id: n_best.captions for n_best in found}
    words, reference_words = tokenize_candidates(by_image, references, timeout)
    scores = CandidateScores(words, scorer_of(weighing.select_by, reference_words, timeout))
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
    terms = Terms(found, cosines, weighing.length_penalty)
    grid = weights(weighing.grid_steps)
    best_weight, curve = choose_weight(terms, scores.of_choice, weighing.select_by, grid, weighing.tolerance)
    first = scores.of_choice(terms.decoded)
    tolerated = f"|tolerance:{weighing.tolerance:g}" if weighing.tolerance else ""
    result = RerankingWeight(
        weight=best_weight,
        length_penalty=weighing.length_penalty,
        select_by=weighing.select_by,
        decoded=round(first, 6),
        curve=curve,
        retriever=digest,
        protocol=f"tok:ptb|images:{len(found)}|split:{SPLIT}|candidates:{count}|tuned on:{SPLIT}{tolerated}",
    )
    result.write(weight)
    chosen = next(point[weighing.select_by] for point in curve if point["weight"] == best_weight)
    report.line(f"tune_reranking: weight {best_weight:g}, {weighing.select_by} {chosen:.4f}; {first:.4f} as decoded")
