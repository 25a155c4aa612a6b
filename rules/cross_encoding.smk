# A cross-attention reranker learns what a retriever confuses, and puts the retriever's first matches in a new order. Its
# scores stand beside the retrievers', under metrics/retrieval. The weight against the cosine is chosen on validation.


rule train_cross_encoder:
    input:
        features=experiment.cross_encoding.features_of,
        text_features=experiment.cross_encoding.text_features_of,
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
        tokens="results/{experiment}/text/tokens.npz",
        train=experiment.cross_encoding.train_embeddings_of,
        validation=experiment.cross_encoding.validation_embeddings_of,
    output:
        weights="results/{experiment}/cross_encoders/{cross}/best.safetensors",
        card="results/{experiment}/cross_encoders/{cross}/card.json",
        history="results/{experiment}/cross_encoders/{cross}/history.csv",
        gpu="results/{experiment}/cross_encoders/{cross}/gpu.csv",
    log:
        "results/{experiment}/logs/train_cross_encoder/{cross}.log",
    benchmark:
        "results/{experiment}/benchmarks/train_cross_encoder/{cross}.tsv"
    priority: 10
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=experiment.cross_encoding.gpus,
        mem_mb=8000,
        runtime=720,
    params:
        folder=subpath(output.weights, parent=True),
        text_features=experiment.cross_encoding.text_features_option,
        code=experiment.cross_encoding.train.code_hash,
        settings=experiment.cross_encoding.train.settings,
        made_from=experiment.cross_encoding.train.made_from,
    shell:
        "python -m vitcapr.cli.train_cross_encoder --features {input.features:q} {params.text_features}"
        " --manifest {input.manifest:q} --vocabulary {input.vocabulary:q} --tokens {input.tokens:q}"
        " --train {input.train:q} --validation {input.validation:q}"
        " --output-dir {params.folder:q} --code {params.code}"
        " --settings {params.settings:q} --log {log:q}"


rule cross_encode:
    input:
        features=experiment.cross_encoding.features_of,
        text_features=experiment.cross_encoding.text_features_of,
        manifest="results/{experiment}/data/manifest.json",
        tokens="results/{experiment}/text/tokens.npz",
        embeddings=experiment.cross_encoding.embeddings_of,
        weights="results/{experiment}/cross_encoders/{cross}/best.safetensors",
        card="results/{experiment}/cross_encoders/{cross}/card.json",
    output:
        matches="results/{experiment}/matches/{cross}/{split}/matches.npz",
    log:
        "results/{experiment}/logs/cross_encode/{cross}.{split}.log",
    benchmark:
        "results/{experiment}/benchmarks/cross_encode/{cross}.{split}.tsv"
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=experiment.cross_encoding.gpus,
        mem_mb=8000,
        runtime=120,
    params:
        folder=subpath(input.weights, parent=True),
        text_features=experiment.cross_encoding.text_features_option,
        settings=experiment.cross_encoding.match.settings,
        made_from=experiment.cross_encoding.match.made_from,
    shell:
        "python -m vitcapr.cli.cross_encode --embeddings {input.embeddings:q} --cross-encoder {params.folder:q}"
        " --features {input.features:q} {params.text_features} --manifest {input.manifest:q}"
        " --tokens {input.tokens:q} --split {wildcards.split} --output {output.matches:q}"
        " --settings {params.settings:q} --log {log:q}"


rule weigh_cross_encoder:
    input:
        matches="results/{experiment}/matches/{cross}/validation/matches.npz",
        ranks=experiment.cross_encoding.validation_ranks_of,
    output:
        weight="results/{experiment}/cross_encoders/{cross}/weight.json",
    log:
        "results/{experiment}/logs/weigh_cross_encoder/{cross}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        settings=experiment.cross_encoding.weigh.settings,
        made_from=experiment.cross_encoding.weigh.made_from,
    shell:
        "python -m vitcapr.cli.weigh_cross_encoder --matches {input.matches:q} --ranks {input.ranks:q}"
        " --output {output.weight:q} --settings {params.settings:q} --log {log:q}"


rule score_cross_encoder:
    input:
        matches="results/{experiment}/matches/{cross}/{split}/matches.npz",
        ranks=experiment.cross_encoding.ranks_of,
        metrics=experiment.cross_encoding.metrics_of,
        weight="results/{experiment}/cross_encoders/{cross}/weight.json",
    output:
        metrics="results/{experiment}/metrics/retrieval/{cross}/{split}/metrics.json",
        ranks="results/{experiment}/metrics/retrieval/{cross}/{split}/ranks.npz",
    log:
        "results/{experiment}/logs/score_cross_encoder/{cross}.{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        settings=experiment.metrics.score_cross_encoder.settings,
        made_from=experiment.metrics.score_cross_encoder.made_from,
    shell:
        "python -m vitcapr.cli.score_cross_encoder --matches {input.matches:q} --before {input.ranks:q}"
        " --before-metrics {input.metrics:q} --weight {input.weight:q} --model {wildcards.cross}"
        " --output {output.metrics:q} --ranks {output.ranks:q}"
        " --settings {params.settings:q} --log {log:q}"
