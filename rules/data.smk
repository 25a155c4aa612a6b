# The images and captions of any data set -> one manifest.


dataset = getattr(stages, experiment.dataset.stage)


use rule cpu_job as data with:
    output:
        folder=dataset.folder("folder", paths.DATA),
    log:
        paths.log("data"),
    threads: 4
    resources:
        **growing(runtime=120, mem_mb=8000),
    params:
        **dataset(),
