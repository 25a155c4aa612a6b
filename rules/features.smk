# Images -> features, once for each backbone. The store is in a folder named by its fingerprint, in results/stores or
# VITCAPR_STORES. No rule declares this folder, because Snakemake would delete its finished chunks before a re-run.


use rule gpu_job as extract with:
    input:
        manifest="results/{experiment}/data/manifest.json",
        backbone=lambda job: features.trained_backbone(job.backbone),
    output:
        part="results/{experiment}/features/{backbone}/parts/{task}.json",
    log:
        "results/{experiment}/logs/extract/{backbone}.{task}.log",
    priority: 20
    resources:
        **stages.extract.on_gpu(runtime=480),
    params:
        **stages.extract(
            tasks=experiment.config.features.tasks,
            stores=features.stores,
        ),


use rule cpu_job as adopt with:
    input:
        store=lambda job: features.adopted_store(
            experiment.config.backbones[job.backbone]
        ),
        manifest="results/{experiment}/data/manifest.json",
    output:
        sealed="results/{experiment}/features/{backbone}/manifest.json",
    log:
        "results/{experiment}/logs/adopt/{backbone}.log",
    wildcard_constraints:
        backbone=one_of(models.adopted),
    params:
        **stages.adopt(content_check=experiment.config.features.content_check),


use rule adopt as adopt_text with:
    input:
        store=lambda job: features.adopted_store(
            experiment.config.text_encoders[job.encoder]
        ),
        manifest="results/{experiment}/data/manifest.json",
    output:
        sealed="results/{experiment}/text_features/{encoder}/manifest.json",
    log:
        "results/{experiment}/logs/adopt_text/{encoder}.log",
    wildcard_constraints:
        encoder=one_of(models.adopted_texts),


use rule cpu_job as seal with:
    input:
        manifest="results/{experiment}/data/manifest.json",
        parts=features.parts,
    output:
        sealed="results/{experiment}/features/{backbone}/manifest.json",
    log:
        "results/{experiment}/logs/seal/{backbone}.log",
    wildcard_constraints:
        backbone=one_of(models.extracted),
    params:
        **stages.seal(
            stores=features.stores,
            content_check=experiment.config.features.content_check,
        ),


use rule cpu_job as feature_statistics with:
    input:
        sealed=list_files(features.sealed_stores),
    output:
        statistics="results/{experiment}/features/statistics.json",
        table=in_report(
            "tables/feature_statistics.md",
            "../workflow/report/feature_statistics.rst",
            "Data",
            table="statistics of the feature stores",
        ),
    log:
        "results/{experiment}/logs/feature_statistics.log",
    threads: 4
    resources:
        **growing(runtime=240, mem_mb=8000),
    params:
        **stages.feature_statistics(sealed=features.sealed_stores),
