# The images and captions of any data set -> one manifest.


dataset = getattr(stages, experiment.dataset.stage)
names_splits = "needed_splits" in dataset.stage.parameters


use rule cpu_job as data with:
    output:
        folder=dataset.folder("folder", "data"),
    log:
        "results/{experiment}/logs/data.log",
    threads: 4
    resources:
        **growing(runtime=120, mem_mb=8000),
    params:
        **(dataset(needed_splits=models.split_uses) if names_splits else dataset()),
