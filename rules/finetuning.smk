# Fine-tunes a ViT and BERT-family text encoders together on decoded images. The embeddings are stored, scored and drawn
# like those of retrievers: all languages together under the fine-tuned dual encoder's name, and each language under MODEL-LANGUAGE.


use rule cpu_job as train_tokenizer with:
    input:
        manifest=paths.MANIFEST,
    output:
        tokenizer=paths.TOKENIZER,
    log:
        paths.log("train_tokenizer", "tokenizer"),
    params:
        **stages.train_tokenizer(),


use rule gpu_job as finetune with:
    input:
        backbone=finetuning.backbone,
        pixels=finetuning.pixels,
        manifest=paths.MANIFEST,
        tokenizers=list_files(finetuning.tokenizers),
        tags=finetuning.tags,
        pairs=finetuning.pairs,
    output:
        finetuned=stages.finetune.folder("finetuned", paths.FINETUNED),
    log:
        paths.log("finetune", "finetuned"),
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
        manifest=paths.MANIFEST,
        finetuned=stages.embed_finetuned.folder("finetuned", paths.FINETUNED),
        tags=finetuning.tags,
        pairs=finetuning.pairs,
    output:
        embeddings=paths.fill(paths.EMBEDDINGS, embedded="{finetuned}"),
    log:
        paths.log("embed_finetuned", "finetuned", "split"),
    resources:
        **stages.embed_finetuned.on_gpu(runtime=120),
    params:
        **stages.embed_finetuned(),


use rule embed_finetuned as embed_untrained with:
    input:
        backbone=finetuning.backbone,
        pixels=finetuning.pixels,
        manifest=paths.MANIFEST,
        tokenizers=list_files(finetuning.tokenizers),
        tags=finetuning.tags,
        pairs=finetuning.pairs,
    output:
        embeddings=paths.fill(paths.EMBEDDINGS, embedded="untrained/{finetuned}"),
    log:
        paths.log("embed_untrained", "finetuned", "split"),
    params:
        **stages.embed_finetuned(
            source=finetuning.source,
            tokenizers=finetuning.tokenizers,
        ),


use rule cpu_job as select_language with:
    input:
        all_languages=paths.fill(paths.EMBEDDINGS, embedded="{finetuned}"),
        manifest=paths.MANIFEST,
    output:
        embeddings=paths.fill(paths.EMBEDDINGS, embedded="{finetuned}-{language}"),
    log:
        paths.log("select_language", "finetuned", "language", "split"),
    params:
        **stages.select_language(),


use rule cpu_job as score_languages with:
    input:
        embeddings=paths.fill(paths.EMBEDDINGS, embedded="{finetuned}"),
        manifest=paths.MANIFEST,
    output:
        metrics=paths.LANGUAGE_SCORES,
    log:
        paths.log("score_languages", "finetuned", "split"),
    threads: 4
    params:
        **stages.score_languages(model=lambda wildcards: wildcards.finetuned),
