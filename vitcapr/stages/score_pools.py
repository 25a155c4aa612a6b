"""Recall@K of queries set apart against pools of candidates, in both directions."""

from typing import Annotated

from vitcapr.config.metrics import SCORERS, IntervalSettings
from vitcapr.errors import UserError
from vitcapr.formats.kinds import (
    EmbeddingsFile,
    ManifestFile,
    MetricsFile,
    PoolsFile,
    QueryBankFile,
    WeightFile,
)
from vitcapr.pipeline.stage import In, ModelName, Out, stage
from vitcapr.progress import Reporter


@stage(execution_only=SCORERS)
def score_pools(
    embeddings: Annotated[list[In[EmbeddingsFile]], "embeddings of the test split, and of the splits of distractors"],
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

    Candidates of other splits are distractors. With a query bank and its weight, the scores are corrected for hubness.
    """
    import numpy as np

    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.pairs import read_pools
    from vitcapr.formats.scores import Score, write_metrics
    from vitcapr.metrics.bootstrap import interval_protocol
    from vitcapr.metrics.pools import joined, origin, pools_protocol, rank_pools
    from vitcapr.metrics.query_bank import corrected, read_correction
    from vitcapr.metrics.retrieval_scoring import check_pool

    data, wanted = read_manifest(manifest), read_pools(pools)
    splits, caption_splits = data.images["split"].to_numpy(str), data.captions["split"].to_numpy(str)
    parts, embedded = [], set()
    for path in embeddings:
        part = read_embeddings(path)
        split = str(splits[part.image_row[0]])
        languages = check_pool(part, data, split, path)
        embedded.add(split)
        parts.append(part)
    needed = {*splits[wanted.image_candidates].tolist(), *caption_splits[wanted.text_candidates].tolist()}
    if missing := needed - embedded:
        raise UserError(f"the pools have candidates of the split '{min(missing)}'", remedy="give its embeddings, too")
    correction = read_correction(query_bank, bank_weight)
    found = joined(parts)
    if correction is not None:
        if np.isin(correction.bank.image_row, wanted.image_candidates).any():
            raise UserError("the query bank has distractors of the pools", remedy="change data.pairs.distractors")
        found = corrected(found, *correction)
    ranked = rank_pools(found, wanted)
    scores: dict[str, Score] = {}
    for direction, each in ranked.items():
        scores |= each.scores(direction, **settings.metrics.resampling)
        report.line(f"score_pools: {direction}: {each.shown}")
    protocol = [*pools_protocol(ranked, languages), *origin(found, wanted, splits, caption_splits)]
    protocol += [] if correction is None else [correction.weight.protocol]
    protocol += interval_protocol(**settings.metrics.resampling)
    write_metrics(metrics, data.dataset, "pools", scores, "|".join(protocol), model=model)
