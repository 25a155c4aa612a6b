# A captioner learns from stored features. Its folder last/, from which a stopped training continues, is not declared:
# Snakemake would delete it.


rule train_captioner:
    input:
        features=experiment.captioning.features_of,
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
        tokens="results/{experiment}/text/tokens.npz",
        word_vectors=experiment.captioning.word_vectors_of,
        start=experiment.captioning.start_of,
    output:
        weights="results/{experiment}/captioners/{captioner}/best.safetensors",
        card="results/{experiment}/captioners/{captioner}/card.json",
        history="results/{experiment}/captioners/{captioner}/history.csv",
        gpu="results/{experiment}/captioners/{captioner}/gpu.csv",
    log:
        "results/{experiment}/logs/train_captioner/{captioner}.log",
    benchmark:
        "results/{experiment}/benchmarks/train_captioner/{captioner}.tsv"
    priority: 10
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=experiment.captioning.train_gpus,
        mem_mb=8000,
        runtime=720,
    params:
        folder=subpath(output.weights, parent=True),
        word_vectors=experiment.captioning.word_vectors_option,
        start=experiment.captioning.start_option,
        code=experiment.captioning.train.code_hash,
        settings=experiment.captioning.train.settings,
        made_from=experiment.captioning.train.made_from,
    shell:
        "python -m vitcapr.cli.train_captioner --features {input.features:q} --manifest {input.manifest:q}"
        " --vocabulary {input.vocabulary:q} --tokens {input.tokens:q} {params.word_vectors}"
        " {params.start} --output-dir {params.folder:q} --code {params.code}"
        " --settings {params.settings:q} --log {log:q}"
