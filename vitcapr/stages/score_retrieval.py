from vitcapr.config.report import SCORERS, IntervalSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


@stage(execution_only=SCORERS)
def score_retrieval(
    embeddings: In[kinds.EmbeddingsFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: IntervalSettings,
    report: Reporter,
    metrics: Out[kinds.MetricsFile],
    ranks: Out[kinds.RanksFile],
    query_bank: In[kinds.QueryBankFile] | None = None,
    bank_weight: In[kinds.WeightFile] | None = None,
    model: ModelName = "",
) -> None:
    """Rank all captions of a split for each of its images and all its images for each caption.

    With a query bank and its weight, the scores are corrected for hubness.
    """
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import write_metrics
    from vitcapr.metrics.query_bank import read_correction
    from vitcapr.metrics.retrieval_scoring import check_pool, recall_lines, score_embeddings

    data, found = read_manifest(manifest), read_embeddings(embeddings)
    languages = check_pool(found, data, split, embeddings)
    correction = read_correction(query_bank, bank_weight)
    with report.track("score_retrieval", len(found.images) * len(found.captions), "scores") as tracker:
        scored = score_embeddings(
            found,
            correction,
            split=split,
            languages=languages,
            advance=tracker.advance,
            **settings.metrics.resampling,
        )
    scored.ranks.write(ranks)
    write_metrics(metrics, data.dataset, split, scored.scores, scored.protocol, model=model)
    for line in recall_lines(scored.scores):
        report.line(f"score_retrieval: {line}")
