# Captions -> vocabulary and word numbers. Word-vector files -> initial embeddings.


rule vocabulary:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        vocabulary="results/{experiment}/text/vocabulary.json",
        tokens="results/{experiment}/text/tokens.npz",
    log:
        "results/{experiment}/logs/vocabulary.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        **stages.vocabulary(),
    shell:
        "{params.command} --log {log:q}"


rule word_vectors:
    input:
        vocabulary="results/{experiment}/text/vocabulary.json",
    output:
        vectors="results/{experiment}/text/word_vectors/{vectors}/vectors.npy",
        coverage="results/{experiment}/text/word_vectors/{vectors}/coverage.json",
    log:
        "results/{experiment}/logs/word_vectors/{vectors}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **stages.word_vectors(sources=experiment.word_vectors_file),
    shell:
        "{params.command} --log {log:q}"
