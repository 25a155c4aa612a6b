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
