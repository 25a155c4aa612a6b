# Trains a captioner on stored features. A stopped training continues from its folder checkpoint/. The rule does not
# declare this folder, because Snakemake would delete it.


use rule gpu_job as train_captioner with:
    input:
        features=lambda job: experiment.sealed(definitions.captioner(job).backbone),
        manifest="results/{experiment}/data/manifest.json",
        vocabulary=experiment.vocabulary,
        tokens=experiment.tokens,
        word_vectors=lambda job: experiment.initial_vectors(definitions.captioner(job)),
        start=experiment.start,
    output:
        captioner=stages.train_captioner.folder("captioner", "captioners/{captioner}"),
    log:
        "results/{experiment}/logs/train_captioner/{captioner}.log",
    priority: 10
    resources:
        **stages.train_captioner.on_gpu(runtime=720),
    params:
        **stages.train_captioner(),
