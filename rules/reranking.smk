# Reranks the candidates of a decoding. The weight of the retriever is fixed, or the validation split selects it.


use rule gpu_job as tune_reranking with:
    input:
        captions=lambda job: captioning.candidates(job, "validation"),
        features=lambda job: features.sealed(captioning.reranker(job).backbone),
        augmented_views=lambda job: features.sealed_views(
            captioning.reranker(job).augmented_views
        ),
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
        retriever=captioning.reranking_retriever,
    output:
        weight="results/{experiment}/reranking/{captioner}/{reranking}/weight.json",
    log:
        "results/{experiment}/logs/tune_reranking/{captioner}.{reranking}.log",
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
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
        retriever=captioning.reranking_retriever,
    output:
        captions="results/{experiment}/captions/{captioner}/{reranking}/{split}/captions.json",
    log:
        "results/{experiment}/logs/rerank/{captioner}.{reranking}.{split}.log",
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
        manifest="results/{experiment}/data/manifest.json",
    output:
        captions="results/{experiment}/captions/{captioner}/{reranking}/{split}/captions.json",
    log:
        "results/{experiment}/logs/rerank/{captioner}.{reranking}.{split}.log",
    wildcard_constraints:
        reranking=one_of(models.rerankings_by("oracle")),
    priority: 20
    params:
        **stages.rerank_oracle(),
