# Image-text retrieval: text features, dual encoders, embeddings, scores.


use rule gpu_job as extract_text with:
    input:
        manifest=paths.MANIFEST,
    output:
        sealed=paths.TEXT_FEATURES,
    log:
        paths.log("extract_text", "encoder"),
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
        manifest=paths.MANIFEST,
        vocabulary=paths.VOCABULARY,
        tokens=paths.TOKENS,
        word_vectors=retrieval.word_vectors,
    output:
        retriever=stages.train_retriever.folder("retriever", paths.RETRIEVER),
    log:
        paths.log("train_retriever", "retriever"),
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
        manifest=paths.MANIFEST,
        vocabulary=paths.VOCABULARY,
        retriever=stages.embed.folder("retriever", paths.RETRIEVER),
    output:
        embeddings=paths.fill(paths.EMBEDDINGS, embedded="{retriever}"),
    log:
        paths.log("embed", "retriever", "split"),
    wildcard_constraints:
        # The training split as well, on request: a distillation learns from it.
        split="train|validation|test",
    priority: 8
    resources:
        **stages.embed.on_gpu(runtime=60),
    params:
        **stages.embed(),


# Selects the weight of a query bank, which corrects scores for hubness. The bank is the training split.
use rule cpu_job as weigh_query_bank with:
    input:
        embeddings=paths.fill(
            paths.EMBEDDINGS, embedded="{querybank_scores}", split="validation"
        ),
        query_bank=paths.fill(
            paths.EMBEDDINGS, embedded="{querybank_scores}", split="train"
        ),
    output:
        weight=paths.QUERY_BANK_WEIGHT,
    log:
        paths.log("weigh_query_bank", "querybank_scores"),
    threads: 4
    params:
        **stages.weigh_query_bank(),


use rule cpu_job as score_retrieval with:
    input:
        embeddings=retrieval.scored_embeddings,
        query_bank=retrieval.query_bank,
        bank_weight=retrieval.bank_weight,
        manifest=paths.MANIFEST,
    output:
        metrics=paths.RETRIEVAL_SCORES,
        ranks=paths.RANKS,
    log:
        paths.log("score_retrieval", "scored", "split"),
    threads: 4
    params:
        **stages.score_retrieval(model=lambda wildcards: wildcards.scored),


use rule cpu_job as score_pools with:
    input:
        embeddings=retrieval.pooled_embeddings,
        query_bank=retrieval.query_bank,
        bank_weight=retrieval.bank_weight,
        manifest=paths.MANIFEST,
        pools=paths.POOLS,
    output:
        metrics=paths.POOL_SCORES,
    log:
        paths.log("score_pools", "scored"),
    threads: 4
    params:
        **stages.score_pools(model=lambda wildcards: wildcards.scored),


# A dual encoder that reads several languages is scored with all of them, and each language under MODEL-LANGUAGE.


use rule cpu_job as select_language with:
    input:
        all_languages=paths.fill(paths.EMBEDDINGS, embedded="{polyglot}"),
        manifest=paths.MANIFEST,
    output:
        embeddings=paths.fill(paths.EMBEDDINGS, embedded="{polyglot}-{language}"),
    log:
        paths.log("select_language", "polyglot", "language", "split"),
    params:
        **stages.select_language(),


use rule cpu_job as score_languages with:
    input:
        embeddings=paths.fill(paths.EMBEDDINGS, embedded="{polyglot}"),
        manifest=paths.MANIFEST,
    output:
        metrics=paths.LANGUAGE_SCORES,
    log:
        paths.log("score_languages", "polyglot", "split"),
    threads: 4
    params:
        **stages.score_languages(model=lambda wildcards: wildcards.polyglot),
