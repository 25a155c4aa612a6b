# Captions -> vocabulary and word numbers, or the pieces of a language model. Word-vector files -> initial embeddings.


use rule cpu_job as vocabulary with:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        vocabulary="results/{experiment}/text/vocabulary.json",
        tokens="results/{experiment}/text/tokens.npz",
    log:
        "results/{experiment}/logs/vocabulary.log",
    params:
        **stages.vocabulary(),


use rule cpu_job as pieces with:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        vocabulary="results/{experiment}/text/pieces/{captioner}/vocabulary.json",
        tokens="results/{experiment}/text/pieces/{captioner}/tokens.npz",
    log:
        "results/{experiment}/logs/pieces/{captioner}.log",
    params:
        **stages.pieces(),


use rule cpu_job as word_vectors with:
    input:
        vocabulary="results/{experiment}/text/vocabulary.json",
    output:
        vectors="results/{experiment}/text/word_vectors/{vectors}/vectors.npy",
        coverage="results/{experiment}/text/word_vectors/{vectors}/coverage.json",
    log:
        "results/{experiment}/logs/word_vectors/{vectors}.log",
    params:
        **stages.word_vectors(),
