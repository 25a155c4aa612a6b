# Captions -> vocabulary and word numbers. Word-vector files -> initial embeddings.


use rule cpu_job as vocabulary with:
    input:
        manifest=paths.MANIFEST,
    output:
        vocabulary=paths.VOCABULARY,
        tokens=paths.TOKENS,
    log:
        paths.log("vocabulary"),
    params:
        **stages.vocabulary(),


use rule cpu_job as word_vectors with:
    input:
        vocabulary=paths.VOCABULARY,
    output:
        vectors=paths.WORD_VECTORS,
        coverage=paths.COVERAGE,
    log:
        paths.log("word_vectors", "vectors"),
    params:
        **stages.word_vectors(),
