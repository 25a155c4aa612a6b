# Pictures become decoded pixels, for models that are trained through their backbone. As with features, the store lies
# under a fingerprinted path that no rule declares.


rule extract_pixels:
    input:
        experiment.features.trained_backbone_of,
        manifest="results/{experiment}/data/manifest.json",
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
        source=experiment.features.backbone_source,
        stores=experiment.features.stores,
        code=experiment.pairs.extract_pixels.code_hash,
        settings=experiment.pairs.extract_pixels.settings,
        made_from=experiment.pairs.extract_pixels.made_from,
    shell:
        "python -m vitcapr.cli.extract_pixels --manifest {input.manifest:q} --source {params.source:q}"
        " --stores {params.stores:q} --output {output.sealed:q}"
        " --code {params.code} --settings {params.settings:q} --log {log:q}"


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
        settings=experiment.pairs.tag_words.settings,
        made_from=experiment.pairs.tag_words.made_from,
    shell:
        "python -m vitcapr.cli.tag_words --manifest {input.manifest:q} --output {output.tags:q} --card {output.card:q}"
        " --settings {params.settings:q} --log {log:q}"


rule pair_claims:
    input:
        experiment.data.besides,
        manifest="results/{experiment}/data/manifest.json",
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
        made_from=experiment.pairs.claims.made_from,
    shell:
        "python -m vitcapr.cli.pair_claims --manifest {input.manifest:q} --output {output.claims:q}"
        " --table {output.table:q} --log {log:q}"
