# Images -> features, once for each backbone. The store is in a folder named by its fingerprint, in results/stores or
# VITCAPR_STORES. No rule declares this folder, because Snakemake would delete its finished chunks before a re-run.


use rule gpu_job as extract with:
    input:
        manifest=paths.MANIFEST,
        backbone=lambda job: features.trained_backbone(job.backbone),
    output:
        part=paths.PART,
    log:
        paths.log("extract", "backbone", "task"),
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
        manifest=paths.MANIFEST,
    output:
        sealed=paths.FEATURES,
    log:
        paths.log("adopt", "backbone"),
    wildcard_constraints:
        backbone=one_of(models.adopted),
    params:
        **stages.adopt(content_check=experiment.config.features.content_check),


use rule adopt as adopt_text with:
    input:
        store=lambda job: features.adopted_store(
            experiment.config.text_encoders[job.encoder]
        ),
        manifest=paths.MANIFEST,
    output:
        sealed=paths.TEXT_FEATURES,
    log:
        paths.log("adopt_text", "encoder"),
    wildcard_constraints:
        encoder=one_of(models.adopted_texts),


use rule cpu_job as seal with:
    input:
        manifest=paths.MANIFEST,
        parts=features.parts,
    output:
        sealed=paths.FEATURES,
    log:
        paths.log("seal", "backbone"),
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
        statistics=paths.STATISTICS,
        table=in_report(
            paths.STATISTICS_TABLE,
            "../workflow/report/feature_statistics.rst",
            "Data",
            table="statistics of the feature stores",
        ),
    log:
        paths.log("feature_statistics"),
    threads: 4
    resources:
        **growing(runtime=240, mem_mb=8000),
    params:
        **stages.feature_statistics(sealed=features.sealed_stores),
