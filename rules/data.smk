# The images and captions of any data set -> one manifest.


dataset = getattr(stages, experiment.dataset.stage)


use rule cpu_job as data with:
    output:
        folder=dataset.folder("folder", "data"),
    log:
        "results/{experiment}/logs/data.log",
    threads: 4
    resources:
        mem_mb=8000,
        runtime=120,
    params:
        **dataset(),


use rule cpu_job as describe_data with:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        croissant="results/{experiment}/data/croissant.json",
    log:
        "results/{experiment}/logs/describe_data.log",
    params:
        **stages.describe_data(),
