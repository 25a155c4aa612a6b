# Fine-tunes a ViT and BERT-family text encoders together on decoded images. The embeddings are stored, scored and drawn
# like those of retrievers: all languages together under the fine-tuned dual encoder's name, and each language under MODEL-LANGUAGE.


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


rule finetune:
    input:
        backbone=experiment.trained_backbone,
        pixels=experiment.pixels,
        manifest="results/{experiment}/data/manifest.json",
        tokenizers=experiment.tokenizer_files,
        tags=experiment.tags,
        pairs=experiment.pairs,
    output:
        finetuned=multiext(
            "results/{experiment}/finetuned_dual_encoders/{finetuned}/",
            "best.safetensors",
            "card.json",
            "readers.json",
            "history.csv",
            "gpu.csv",
            "sweep.csv",
        ),
    log:
        "results/{experiment}/logs/finetune/{finetuned}.log",
    benchmark:
        "results/{experiment}/benchmarks/finetune/{finetuned}.tsv"
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=stages.finetune.gpus,
        mem_mb=16000,
        runtime=1440,
    params:
        **stages.finetune(
            source=experiment.backbone_source,
            tokenizers=experiment.tokenizer_names,
            sources=experiment.checkpoints,
        ),
    shell:
        "{params.command} --log {log:q}"


rule embed_finetuned:
    input:
        pixels=experiment.pixels,
        manifest="results/{experiment}/data/manifest.json",
        finetuned=multiext(
            "results/{experiment}/finetuned_dual_encoders/{finetuned}/",
            "best.safetensors",
            "card.json",
            "readers.json",
        ),
        tags=experiment.tags,
        pairs=experiment.pairs,
    output:
        embeddings="results/{experiment}/embeddings/{finetuned}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/embed_finetuned/{finetuned}.{split}.log",
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=stages.embed_finetuned.gpus,
        mem_mb=8000,
        runtime=120,
    params:
        **stages.embed_finetuned(sources=experiment.checkpoints),
    shell:
        "{params.command} --log {log:q}"


rule embed_untrained:
    input:
        backbone=experiment.trained_backbone,
        pixels=experiment.pixels,
        manifest="results/{experiment}/data/manifest.json",
        tokenizers=experiment.tokenizer_files,
        tags=experiment.tags,
        pairs=experiment.pairs,
    output:
        embeddings="results/{experiment}/embeddings/untrained/{finetuned}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/embed_untrained/{finetuned}.{split}.log",
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        gpu=stages.embed_finetuned.gpus,
        mem_mb=8000,
        runtime=120,
    params:
        **stages.embed_finetuned(
            source=experiment.backbone_source,
            tokenizers=experiment.tokenizer_names,
            sources=experiment.checkpoints,
        ),
    shell:
        "{params.command} --log {log:q}"


rule select_language:
    input:
        all_languages="results/{experiment}/embeddings/{finetuned}/{split}/embeddings.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        embeddings="results/{experiment}/embeddings/{finetuned}-{language}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/select_language/{finetuned}-{language}.{split}.log",
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
        embeddings="results/{experiment}/embeddings/{finetuned}/{split}/embeddings.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        metrics="results/{experiment}/metrics/languages/{finetuned}/{split}/metrics.json",
    log:
        "results/{experiment}/logs/score_languages/{finetuned}.{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 4
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        **stages.score_languages(model=lambda wildcards: wildcards.finetuned),
    shell:
        "{params.command} --log {log:q}"
