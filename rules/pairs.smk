# Images -> decoded pixels, for models that fine-tune their backbone. As with features, no rule declares the store.


use rule cpu_job as extract_pixels with:
    input:
        manifest=paths.MANIFEST,
        backbone=lambda job: features.trained_backbone(job.backbone),
    output:
        sealed=paths.PIXELS,
    log:
        paths.log("extract_pixels", "backbone"),
    wildcard_constraints:
        backbone=one_of(list(experiment.config.backbones)),
    threads: 8
    resources:
        **growing(runtime=120),
    params:
        **stages.extract_pixels(stores=features.stores),


use rule cpu_job as tag_words with:
    input:
        manifest=paths.MANIFEST,
    output:
        tags=paths.TAGS,
        card=paths.TAGS_CARD,
    log:
        paths.log("tag_words"),
    params:
        **stages.tag_words(),
