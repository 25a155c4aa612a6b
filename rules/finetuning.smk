# Fine-tunes a ViT and BERT-family text encoders together on decoded images. The embeddings are stored, scored and drawn
# like those of retrievers: all languages together under the fine-tuned dual encoder's name, and each language under MODEL-LANGUAGE.


use rule cpu_job as train_tokenizer with:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        tokenizer="results/{experiment}/tokenizers/{tokenizer}/tokenizer.json",
    log:
        "results/{experiment}/logs/train_tokenizer/{tokenizer}.log",
    params:
        **stages.train_tokenizer(),


use rule gpu_job as finetune with:
    input:
        backbone=finetuning.backbone,
        pixels=finetuning.pixels,
        manifest="results/{experiment}/data/manifest.json",
        tokenizers=list_files(finetuning.tokenizers),
        tags=finetuning.tags,
        pairs=finetuning.pairs,
    output:
        finetuned=stages.finetune.folder(
            "finetuned", "finetuned_dual_encoders/{finetuned}"
        ),
    log:
        "results/{experiment}/logs/finetune/{finetuned}.log",
    resources:
        **stages.finetune.on_gpu(runtime=1440, mem_mb=16000),
    params:
        **stages.finetune(
            source=finetuning.source,
            tokenizers=finetuning.tokenizers,
        ),


use rule gpu_job as embed_finetuned with:
    input:
        pixels=finetuning.pixels,
        manifest="results/{experiment}/data/manifest.json",
        finetuned=stages.embed_finetuned.folder(
            "finetuned", "finetuned_dual_encoders/{finetuned}"
        ),
        tags=finetuning.tags,
        pairs=finetuning.pairs,
    output:
        embeddings="results/{experiment}/embeddings/{finetuned}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/embed_finetuned/{finetuned}.{split}.log",
    resources:
        **stages.embed_finetuned.on_gpu(runtime=120),
    params:
        **stages.embed_finetuned(),


use rule embed_finetuned as embed_untrained with:
    input:
        backbone=finetuning.backbone,
        pixels=finetuning.pixels,
        manifest="results/{experiment}/data/manifest.json",
        tokenizers=list_files(finetuning.tokenizers),
        tags=finetuning.tags,
        pairs=finetuning.pairs,
    output:
        embeddings="results/{experiment}/embeddings/untrained/{finetuned}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/embed_untrained/{finetuned}.{split}.log",
    params:
        **stages.embed_finetuned(
            source=finetuning.source,
            tokenizers=finetuning.tokenizers,
        ),


use rule cpu_job as select_language with:
    input:
        all_languages="results/{experiment}/embeddings/{finetuned}/{split}/embeddings.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        embeddings="results/{experiment}/embeddings/{finetuned}-{language}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/select_language/{finetuned}-{language}.{split}.log",
    params:
        **stages.select_language(),


use rule cpu_job as score_languages with:
    input:
        embeddings="results/{experiment}/embeddings/{finetuned}/{split}/embeddings.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        metrics="results/{experiment}/metrics/languages/{finetuned}/{split}/metrics.json",
    log:
        "results/{experiment}/logs/score_languages/{finetuned}.{split}.log",
    threads: 4
    params:
        **stages.score_languages(model=lambda wildcards: wildcards.finetuned),
