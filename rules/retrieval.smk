# Image-text retrieval: text features, dual encoders, embeddings, scores.


use rule gpu_job as extract_text with:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        sealed="results/{experiment}/text_features/{encoder}/manifest.json",
    log:
        "results/{experiment}/logs/extract_text/{encoder}.log",
    wildcard_constraints:
        encoder=one_of(models.extracted_texts),
    resources:
        **stages.extract_text.on_gpu(runtime=240),
    params:
        **stages.extract_text(
            stores=features.stores,
        ),


use rule gpu_job as train_retriever with:
    input:
        features=retrieval.features,
        augmented_views=retrieval.augmented_views,
        text_features=retrieval.text_features,
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
        tokens="results/{experiment}/text/tokens.npz",
        word_vectors=retrieval.word_vectors,
    output:
        retriever=stages.train_retriever.folder("retriever", "retrievers/{retriever}"),
    log:
        "results/{experiment}/logs/train_retriever/{retriever}.log",
    priority: 7
    resources:
        **stages.train_retriever.on_gpu(runtime=720),
    params:
        **stages.train_retriever(),


use rule gpu_job as embed with:
    input:
        features=retrieval.features,
        augmented_views=retrieval.augmented_views,
        text_features=retrieval.text_features,
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
        retriever=stages.embed.folder("retriever", "retrievers/{retriever}"),
    output:
        embeddings="results/{experiment}/embeddings/{retriever}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/embed/{retriever}.{split}.log",
    priority: 8
    resources:
        **stages.embed.on_gpu(runtime=60),
    params:
        **stages.embed(),


# Selects the weight of a query bank, which corrects scores for hubness. The bank is the training split.
use rule cpu_job as weigh_query_bank with:
    input:
        embeddings="results/{experiment}/embeddings/{querybank_scores}/validation/embeddings.npz",
        query_bank="results/{experiment}/embeddings/{querybank_scores}/train/embeddings.npz",
    output:
        weight="results/{experiment}/query_banks/{querybank_scores}/weight.json",
    log:
        "results/{experiment}/logs/weigh_query_bank/{querybank_scores}.log",
    threads: 4
    params:
        **stages.weigh_query_bank(),


use rule cpu_job as score_retrieval with:
    input:
        embeddings=retrieval.scored_embeddings,
        query_bank=retrieval.query_bank,
        bank_weight=retrieval.bank_weight,
        manifest="results/{experiment}/data/manifest.json",
    output:
        metrics="results/{experiment}/metrics/retrieval/{scored}/{split}/metrics.json",
        ranks="results/{experiment}/metrics/retrieval/{scored}/{split}/ranks.npz",
    log:
        "results/{experiment}/logs/score_retrieval/{scored}.{split}.log",
    threads: 4
    params:
        **stages.score_retrieval(model=lambda wildcards: wildcards.scored),


use rule cpu_job as score_pools with:
    input:
        embeddings=retrieval.pooled_embeddings,
        query_bank=retrieval.query_bank,
        bank_weight=retrieval.bank_weight,
        manifest="results/{experiment}/data/manifest.json",
        pools="results/{experiment}/data/pools.npz",
    output:
        metrics="results/{experiment}/metrics/retrieval/{scored}/pools/metrics.json",
    log:
        "results/{experiment}/logs/score_pools/{scored}.log",
    threads: 4
    params:
        **stages.score_pools(model=lambda wildcards: wildcards.scored),
