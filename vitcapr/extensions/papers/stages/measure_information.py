from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


@stage()
def measure_information(
    after: In[kinds.EmbeddingsFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    report: Reporter,
    metrics: Out[kinds.MetricsFile],
    before: In[kinds.EmbeddingsFile] | None = None,
    model: ModelName = "",
) -> None:
    """Measure entropy and mutual information of the embeddings of a split.

    With ``before``, the initial model is measured too; its scores end in _before.
    """
    from vitcapr.extensions.papers.information import NEIGHBOURS, PROTOCOL, embedding_information
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import write_metrics
    from vitcapr.metrics.bootstrap import plain_score
    from vitcapr.metrics.retrieval_scoring import check_pool

    data = read_manifest(manifest)
    values: dict[str, float] = {}
    for path, ending in ((before, "_before"), (after, "")):
        if path is None:
            continue
        found = read_embeddings(path)
        check_pool(found, data, split, path)
        if len(found.images) <= NEIGHBOURS:
            raise UserError(f"{len(found.images)} pictures are too few to measure what features share", where=path)
        values |= {f"{name}{ending}": value for name, value in embedding_information(found).items()}
    for name in [name for name in values if not name.endswith("_before")]:
        earlier = f"{values[f'{name}_before']:.3f} -> " if before is not None else ""
        report.line(f"measure_information: {name} {earlier}{values[name]:.3f} bits")
    scores = {name: plain_score(value, len(data.rows(split))) for name, value in values.items()}
    write_metrics(metrics, data.dataset, split, scores, f"{PROTOCOL}|split:{split}", model=model)
