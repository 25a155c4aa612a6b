from vitcapr.config.report import SCORERS, IntervalSettings
from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


@stage(execution_only=SCORERS)
def score_languages(
    embeddings: In[kinds.EmbeddingsFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: IntervalSettings,
    report: Reporter,
    metrics: Out[kinds.MetricsFile],
    model: ModelName = "",
) -> None:
    """Rank the captions of each language for each caption of every other."""
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import Score, write_metrics
    from vitcapr.metrics.pools import rank_languages
    from vitcapr.metrics.retrieval_scoring import check_pool

    data, found = read_manifest(manifest), read_embeddings(embeddings)
    languages = check_pool(found, data, split, embeddings)
    if len(languages) < 2:
        raise UserError("captions of one language only were embedded", where=embeddings)
    spoken = data.caption_table.column("language").to_numpy()[found.caption_row]
    scores: dict[str, Score] = {}
    pools = []
    for name, ranked in rank_languages(found, spoken, languages):
        scores |= ranked.scores(name, **settings.metrics.resampling)
        pools.append(f"{name}:{len(ranked.ranks)}of{ranked.pool}captions")
        report.line(f"score_languages: {name}: {ranked.shown}")
    parts = [*pools, "hit:any caption of the picture", "ties:pessimistic", f"split:{split}"]
    write_metrics(metrics, data.dataset, split, scores, "|".join(parts), model=model)
