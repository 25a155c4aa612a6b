# Fine-tunes a ViT and BERT-family text encoders together on decoded images. The embeddings are stored, scored and drawn
# like those of retrievers: all languages together under the fine-tuned dual encoder's name, and each language under MODEL-LANGUAGE.


tokenizers = lambda job: experiment.tokenizer_files(definitions.dual_encoder(job))
image_source = lambda job: experiment.backbone_source(
    definitions.dual_encoder(job).image.backbone
)
untrained_inputs = {
    "backbone": lambda job: experiment.trained_backbone(
        definitions.dual_encoder(job).image.backbone
    ),
    "tokenizers": list_files(tokenizers),
}
data_inputs = {
    "pixels": lambda job: experiment.pixels(definitions.dual_encoder(job)),
    "manifest": "results/{experiment}/data/manifest.json",
    "tags": lambda job: experiment.tags(definitions.dual_encoder(job)),
    "pairs": lambda job: experiment.pairs(definitions.dual_encoder(job)),
}


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
        **untrained_inputs,
        **data_inputs,
    output:
        finetuned=stages.finetune.folder(
            "finetuned", "finetuned_dual_encoders/{finetuned}"
        ),
    log:
        "results/{experiment}/logs/finetune/{finetuned}.log",
    resources:
        **stages.finetune.on_gpu(runtime=1440, mem_mb=16000),
    params:
        **stages.finetune(source=image_source, tokenizers=tokenizers),


use rule gpu_job as embed_finetuned with:
    input:
        **data_inputs,
        finetuned=stages.embed_finetuned.folder(
            "finetuned", "finetuned_dual_encoders/{finetuned}"
        ),
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
        **untrained_inputs,
        **data_inputs,
    output:
        embeddings="results/{experiment}/embeddings/untrained/{finetuned}/{split}/embeddings.npz",
    log:
        "results/{experiment}/logs/embed_untrained/{finetuned}.{split}.log",
    params:
        **stages.embed_finetuned(source=image_source, tokenizers=tokenizers),


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
