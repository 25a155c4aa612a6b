# Trains a captioner on stored features. A stopped training continues from its folder checkpoint/. The rule does not
# declare this folder, because Snakemake would delete it.


use rule gpu_job as train_captioner with:
    input:
        features=captioning.features,
        manifest=paths.MANIFEST,
        vocabulary=captioning.vocabulary,
        tokens=captioning.tokens,
        word_vectors=captioning.word_vectors,
        start=captioning.start,
    output:
        captioner=stages.train_captioner.folder("captioner", paths.CAPTIONER),
    log:
        paths.log("train_captioner", "captioner"),
    priority: 10
    resources:
        **stages.train_captioner.on_gpu(runtime=720),
    params:
        **stages.train_captioner(),
