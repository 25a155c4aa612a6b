# Fine-tunes a ViT and BERT-family text encoders together on decoded images. The embeddings are stored, scored and drawn
# like those of retrievers: all languages together under the matcher's name, and each language under MATCHER-LANGUAGE.


rule train_tokenizer:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        tokenizer="results/{experiment}/tokenizers/{tokenizer}/tokenizer.json",
    log:
        "results/{experiment}/logs/train_tokenizer/{tokenizer}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        **stages.train_tokenizer(),
    shell:
        "{params.command} --log {log:q}"


rule train_matcher:
    input:
        backbone=experiment.matching.trained_backbone_of,
        pixels=experiment.matching.pixels_of,
        manifest="results/{experiment}/data/manifest.json",
        tokenizers=experiment.matching.tokenizers_of,
        tags=experiment.matching.tags_of,
    output:
        matcher=multiext(
            "results/{experiment}/matchers/{matcher}/",
            "best.safetensors",
            "card.json",
            "readers.json",
            "history.csv",
            "gpu.csv",
        ),
    log:
        "results/{experiment}/logs/train_matcher/{matcher}.log",
    benchmark:
        "results/{experiment}/benchmarks/train_matcher/{matcher}.tsv"
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=stages.train_matcher.gpus,
        mem_mb=16000,
        runtime=1440,
    params:
        **stages.train_matcher(
            source=experiment.matching.source_of,
            tokenizers=experiment.matching.names_of_tokenizers,
            sources=experiment.matching.checkpoints,
        ),
    shell:
        "{params.command} --log {log:q}"


rule embed_matcher:
    input:
        pixels=experiment.matching.pixels_of,
        manifest="results/{experiment}/data/manifest.json",
        matcher=multiext(
            "results/{experiment}/matchers/{matcher}/",
            "best.safetensors",
            "card.json",
            "readers.json",
        ),
        tags=experiment.matching.tags_of,
    output:
        embeddings="results/{experiment}/embeddings/{matcher}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/embed_matcher/{matcher}.{split}.log",
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=stages.embed_matcher.gpus,
        mem_mb=8000,
        runtime=120,
    params:
        **stages.embed_matcher(sources=experiment.matching.checkpoints),
    shell:
        "{params.command} --log {log:q}"


rule embed_untrained_matcher:
    input:
        backbone=experiment.matching.trained_backbone_of,
        pixels=experiment.matching.pixels_of,
        manifest="results/{experiment}/data/manifest.json",
        tokenizers=experiment.matching.tokenizers_of,
        tags=experiment.matching.tags_of,
    output:
        embeddings="results/{experiment}/embeddings/untrained/{matcher}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/embed_untrained_matcher/{matcher}.{split}.log",
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=stages.embed_matcher.gpus,
        mem_mb=8000,
        runtime=120,
    params:
        **stages.embed_matcher(
            source=experiment.matching.source_of,
            tokenizers=experiment.matching.names_of_tokenizers,
            sources=experiment.matching.checkpoints,
        ),
    shell:
        "{params.command} --log {log:q}"


rule select_language:
    input:
        all_languages="results/{experiment}/embeddings/{matcher}/{split}/embeddings.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        embeddings="results/{experiment}/embeddings/{matcher}-{language}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/select_language/{matcher}-{language}.{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=10,
    params:
        **stages.select_language(),
    shell:
        "{params.command} --log {log:q}"


rule score_languages:
    input:
        embeddings="results/{experiment}/embeddings/{matcher}/{split}/embeddings.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        metrics="results/{experiment}/metrics/languages/{matcher}/{split}/metrics.json",
    log:
        "results/{experiment}/logs/score_languages/{matcher}.{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 4
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        **stages.score_languages(model=lambda wildcards: wildcards.matcher),
    shell:
        "{params.command} --log {log:q}"


rule measure_information:
    input:
        before="results/{experiment}/embeddings/untrained/{matcher}/{split}/embeddings.npz",
        after="results/{experiment}/embeddings/{matcher}/{split}/embeddings.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        metrics="results/{experiment}/metrics/information/{matcher}/{split}/metrics.json",
    log:
        "results/{experiment}/logs/measure_information/{matcher}.{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **stages.measure_information(model=lambda wildcards: wildcards.matcher),
    shell:
        "{params.command} --log {log:q}"
