# Pictures become features, once for each backbone. The store itself lies under a fingerprinted path in results/stores,
# or in VITCAPR_STORES, that no rule declares: Snakemake would delete it before a re-run, and what is finished of it must
# survive.


rule train_backbone:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        config="results/{experiment}/backbones/trained/config.json",
        weights="results/{experiment}/backbones/trained/model.safetensors",
        preprocessor="results/{experiment}/backbones/trained/preprocessor_config.json",
        history="results/{experiment}/backbones/trained/history.csv",
    log:
        "results/{experiment}/logs/train_backbone.log",
    benchmark:
        "results/{experiment}/benchmarks/train_backbone.tsv"
    priority: 20
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=8000,
        runtime=120,
    params:
        folder=subpath(output.config, parent=True),
        settings=experiment.features.train_backbone.settings,
        made_from=experiment.features.train_backbone.made_from,
    shell:
        "python -m vitcapr.cli.train_backbone --manifest {input.manifest:q} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule extract:
    input:
        experiment.features.trained_backbone_of,
        manifest="results/{experiment}/data/manifest.json",
    output:
        part="results/{experiment}/features/{backbone}/parts/{task}.json",
    log:
        "results/{experiment}/logs/extract/{backbone}.{task}.log",
    benchmark:
        "results/{experiment}/benchmarks/extract/{backbone}.{task}.tsv"
    priority: 20
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=experiment.features.gpus,
        mem_mb=8000,
        runtime=480,
    params:
        source=experiment.features.backbone_source,
        tasks=experiment.features.task_count,
        stores=experiment.features.stores,
        code=experiment.features.extract.code_hash,
        settings=experiment.features.extract.settings,
        made_from=experiment.features.extract.made_from,
    shell:
        "python -m vitcapr.cli.extract --manifest {input.manifest:q} --source {params.source:q}"
        " --task {wildcards.task} --tasks {params.tasks} --stores {params.stores:q} --output {output.part:q}"
        " --code {params.code} --settings {params.settings:q} --log {log:q}"


rule adopt:
    input:
        store=experiment.features.adopted_store,
        manifest="results/{experiment}/data/manifest.json",
    output:
        sealed="results/{experiment}/features/{backbone}/manifest.json",
    log:
        "results/{experiment}/logs/adopt/{backbone}.log",
    wildcard_constraints:
        backbone=one_of(experiment.features.adopted),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        made_from=experiment.features.adopt.made_from,
    shell:
        "python -m vitcapr.cli.adopt {input.store:q} --manifest {input.manifest:q}"
        " --output {output.sealed:q} --log {log:q}"


rule seal:
    input:
        manifest="results/{experiment}/data/manifest.json",
        parts=experiment.features.parts_of,
    output:
        sealed="results/{experiment}/features/{backbone}/manifest.json",
    log:
        "results/{experiment}/logs/seal/{backbone}.log",
    wildcard_constraints:
        backbone=one_of(experiment.features.extracted),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        stores=experiment.features.stores,
        made_from=experiment.features.seal.made_from,
    shell:
        "python -m vitcapr.cli.seal {input.parts:q} --manifest {input.manifest:q}"
        " --stores {params.stores:q} --output {output.sealed:q} --log {log:q}"
