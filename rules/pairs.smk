# Images -> decoded pixels, for models that fine-tune their backbone. As with features, no rule declares the store.


use rule cpu_job as extract_pixels with:
    input:
        manifest="results/{experiment}/data/manifest.json",
        backbone=lambda job: features.trained_backbone(job.backbone),
    output:
        sealed="results/{experiment}/pixels/{backbone}/manifest.json",
    log:
        "results/{experiment}/logs/extract_pixels/{backbone}.log",
    wildcard_constraints:
        backbone=one_of(list(experiment.config.backbones)),
    threads: 8
    resources:
        **growing(runtime=120),
    params:
        **stages.extract_pixels(stores=features.stores),


use rule cpu_job as tag_words with:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        tags="results/{experiment}/text/tags/tags.npz",
        card="results/{experiment}/text/tags/tags.json",
    log:
        "results/{experiment}/logs/tag_words.log",
    params:
        **stages.tag_words(),
