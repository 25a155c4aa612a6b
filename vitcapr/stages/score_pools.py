"""Recall@K of queries set apart against pools of candidates, in both directions."""

from vitcapr.config.metrics import SCORERS, IntervalSettings
from vitcapr.declaration.kinds import (
    EmbeddingsFile,
    ManifestFile,
    MetricsFile,
    PoolsFile,
    QueryBankFile,
    WeightFile,
)
from vitcapr.declaration.stage import In, ModelName, Out, stage
from vitcapr.progress import Reporter


@stage(execution_only=SCORERS)
def score_pools(
    embeddings: In[EmbeddingsFile],
    manifest: In[ManifestFile],
    pools: In[PoolsFile],
    settings: IntervalSettings,
    report: Reporter,
    metrics: Out[MetricsFile],
    query_bank: In[QueryBankFile] | None = None,
    bank_weight: In[WeightFile] | None = None,
    model: ModelName = "",
) -> None:
    """Rank the candidate texts for each query image and the candidate images for each query text of the test split.

    With a query bank and its weight, the scores are corrected for hubness.
    """
    from vitcapr.artefacts.embeddings import read_embeddings
    from vitcapr.artefacts.manifest import read_manifest
    from vitcapr.artefacts.metrics import write_metrics
    from vitcapr.artefacts.pools import read_pools
    from vitcapr.metrics.pools import SPLIT, rank_pools
    from vitcapr.metrics.report import interval_protocol
    from vitcapr.metrics.retrieval_files import check_pool, read_correction

    samples, seed = settings.metrics.bootstrap_samples, settings.metrics.bootstrap_seed
    data, found = read_manifest(manifest), read_embeddings(embeddings)
    languages = check_pool(found, data, SPLIT, embeddings)
    correction = read_correction(query_bank, bank_weight)
    ranked = rank_pools(found if correction is None else correction.applied(found), read_pools(pools))
    write_metrics(
        metrics,
        dataset=data.dataset,
        split="pools",
        model=model,
        decoding="",
        metrics=ranked.scores(samples, seed),
        protocol="|".join(
            [
                *ranked.protocol(languages),
                *([] if correction is None else [correction.protocol]),
                *interval_protocol(samples, seed),
            ]
        ),
    )
    for line in ranked.shown():
        report.line(f"score_pools: {line}")
