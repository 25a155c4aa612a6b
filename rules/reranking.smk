# Reranks the candidates of a decoding. The weight of the retriever is fixed, or the validation split selects it.


use rule gpu_job as tune_reranking with:
    input:
        captions=lambda job: captioning.candidates(job, "validation"),
        features=lambda job: features.sealed(captioning.reranker(job).backbone),
        augmented_views=lambda job: features.sealed_views(
            captioning.reranker(job).augmented_views
        ),
        manifest=paths.MANIFEST,
        vocabulary=paths.VOCABULARY,
        retriever=captioning.reranking_retriever,
    output:
        weight=paths.RERANKING_WEIGHT,
    log:
        paths.log("tune_reranking", "captioner", "reranking"),
    priority: 20
    threads: 4
    resources:
        **stages.tune_reranking.on_gpu(runtime=60),
    params:
        **stages.tune_reranking(),


use rule gpu_job as rerank with:
    input:
        candidates=captioning.candidates,
        weight=captioning.reranking_weight,
        features=lambda job: features.sealed(captioning.reranker(job).backbone),
        augmented_views=lambda job: features.sealed_views(
            captioning.reranker(job).augmented_views
        ),
        manifest=paths.MANIFEST,
        vocabulary=paths.VOCABULARY,
        retriever=captioning.reranking_retriever,
    output:
        captions=paths.RERANKED,
    log:
        paths.log("rerank", "captioner", "reranking", "split"),
    wildcard_constraints:
        reranking=one_of(models.rerankings_by("retriever")),
    priority: 20
    threads: 4
    resources:
        **stages.rerank.on_gpu(runtime=60),
    params:
        **stages.rerank(),


use rule cpu_job as rerank_oracle with:
    input:
        candidates=captioning.candidates,
        manifest=paths.MANIFEST,
    output:
        captions=paths.RERANKED,
    log:
        paths.log("rerank", "captioner", "reranking", "split"),
    wildcard_constraints:
        reranking=one_of(models.rerankings_by("oracle")),
    priority: 20
    params:
        **stages.rerank_oracle(),
