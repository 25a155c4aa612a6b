from typing import Annotated

from vitcapr.config.report import SCORERS, IntervalSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, ModelName, Out, stage
from vitcapr.progress import Reporter


@stage(execution_only=SCORERS)
def score_pools(
    embeddings: Annotated[list[In[kinds.EmbeddingsFile]], "embeddings of the test split and of those of distractors"],
    manifest: In[kinds.ManifestFile],
    pools: In[kinds.PoolsFile],
    settings: IntervalSettings,
    report: Reporter,
    metrics: Out[kinds.MetricsFile],
    query_bank: In[kinds.QueryBankFile] | None = None,
    bank_weight: In[kinds.WeightFile] | None = None,
    model: ModelName = "",
) -> None:
    """Rank the candidate texts for each query image and the candidate images for each query text of the test split.

    Candidates of other splits are distractors. With a query bank and its weight, the scores are corrected for hubness.
    """
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.pair_files import read_pools
    from vitcapr.formats.scores import Score, write_metrics
    from vitcapr.metrics.bootstrap import interval_protocol
    from vitcapr.metrics.pools import origin, pools_protocol, rank_pools, read_pooled
    from vitcapr.metrics.query_bank import read_correction

    data, wanted, correction = read_manifest(manifest), read_pools(pools), read_correction(query_bank, bank_weight)
    pooled, languages = read_pooled(embeddings, data, wanted, correction)
    ranked = rank_pools(pooled, wanted)
    scores: dict[str, Score] = {}
    for direction, each in ranked.items():
        scores |= each.scores(direction, **settings.metrics.resampling)
        report.line(f"score_pools: {direction}: {each.shown}")
    protocol = [*pools_protocol(ranked, languages), *origin(pooled, wanted, data)]
    protocol += [] if correction is None else [correction.weight.protocol]
    protocol += interval_protocol(**settings.metrics.resampling)
    write_metrics(metrics, data.dataset, "pools", scores, "|".join(protocol), model=model)
