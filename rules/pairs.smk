# Images -> decoded pixels, for models that fine-tune their backbone. As with features, no rule declares the store.


rule extract_pixels:
    input:
        manifest="results/{experiment}/data/manifest.json",
        backbone=experiment.trained_backbone,
    output:
        sealed="results/{experiment}/pixels/{backbone}/manifest.json",
    log:
        "results/{experiment}/logs/extract_pixels/{backbone}.log",
    benchmark:
        "results/{experiment}/benchmarks/extract_pixels/{backbone}.tsv"
    wildcard_constraints:
        backbone=one_of(list(experiment.config.backbones)),
    conda:
        "../envs/cpu.yaml"
    threads: 8
    resources:
        mem_mb=4000,
        runtime=120,
    params:
        **stages.extract_pixels(
            stores=experiment.stores, sources=experiment.backbone_files
        ),
    shell:
        "{params.command} --log {log:q}"


rule tag_words:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        tags="results/{experiment}/text/tags/tags.npz",
        card="results/{experiment}/text/tags/tags.json",
    log:
        "results/{experiment}/logs/tag_words.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        **stages.tag_words(),
    shell:
        "{params.command} --log {log:q}"


rule pair_claims:
    input:
        manifest="results/{experiment}/data/manifest.json",
        pairs="results/{experiment}/data/pairs.parquet",
        cleaning="results/{experiment}/data/cleaning.json",
    output:
        claims="results/{experiment}/tables/claims.json",
        table="results/{experiment}/tables/claims.md",
    log:
        "results/{experiment}/logs/pair_claims.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        **stages.pair_claims(),
    shell:
        "{params.command} --log {log:q}"
