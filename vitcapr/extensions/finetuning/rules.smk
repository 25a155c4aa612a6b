# Fine-tunes a ViT and BERT-family text encoders together on decoded images. The embeddings are stored, scored and drawn
# like those of retrievers.

from vitcapr.extensions.finetuning import settings as finetuned
from vitcapr.extensions.finetuning.finetuning_files import Finetuning

finetuning = Finetuning(models, features)
loss_histories = partial(finetuning.loss_curves, paths.HISTORY)
loss_cards = partial(finetuning.loss_curves, paths.CARD)


wildcard_constraints:
    tokenizer=one_of(finetuned.tokenizers(experiment.config)),
    finetuned=one_of(models.needed(finetuned.SECTION)),
    loss_curves=one_of(list(experiment.config.run.loss_curves)),


# As with features, no rule declares the store of the pixels.


use rule cpu_job as extract_pixels with:
    input:
        manifest=paths.MANIFEST,
        backbone=lambda job: features.trained_backbone(job.backbone),
    output:
        sealed=finetuned.PIXELS,
    log:
        paths.log("extract_pixels", "backbone"),
    wildcard_constraints:
        backbone=one_of(list(experiment.config.backbones)),
    threads: 8
    resources:
        **growing(runtime=120),
    params:
        **stages.extract_pixels(stores=features.stores),


use rule cpu_job as tag_words with:
    input:
        manifest=paths.MANIFEST,
    output:
        tags=finetuned.TAGS,
        card=finetuned.TAGS_CARD,
    log:
        paths.log("tag_words"),
    params:
        **stages.tag_words(),


use rule cpu_job as train_tokenizer with:
    input:
        manifest=paths.MANIFEST,
    output:
        tokenizer=finetuned.TOKENIZER,
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
        finetuned=stages.finetune.folder("finetuned", finetuned.FINETUNED),
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
        finetuned=stages.embed_finetuned.folder("finetuned", finetuned.FINETUNED),
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


use rule cpu_job as draw_loss_curves with:
    input:
        histories=list_files(loss_histories),
        cards=list_files(loss_cards),
    output:
        pictures=report(
            targets.in_formats(finetuned.LOSS_CURVES),
            caption=figure_caption,
            category="Training",
            labels={
                "figure": "losses of finetuned_dual_encoders",
                "compared": "{loss_curves}",
            },
        ),
    log:
        paths.log("draw_loss_curves", "loss_curves"),
    params:
        **stages.draw_loss_curves(
            histories=loss_histories,
            cards=loss_cards,
        ),
        caption="Losses after every epoch, of models that differ in one setting. A star marks the epoch whose weights "
        "are used.",


use rule cpu_job as draw_pixels with:
    input:
        pixels=finetuned.PIXELS,
        manifest=paths.MANIFEST,
    output:
        pictures=report(
            targets.in_formats(finetuned.PIXEL_SHEETS),
            caption=figure_caption,
            category="Data",
            labels={"figure": "augmentation and Base64"},
        ),
    log:
        paths.log("draw_pixels", "backbone"),
    wildcard_constraints:
        backbone=one_of(finetuned.pixel_backbones(experiment.config)),
    params:
        **stages.draw_pixels(),
        caption="Pictures in training: each random change of the experiment on its own, at its limit, and a picture's "
        "file in Base64. Base64 makes a file a third longer. It is shorter than the raw pixels because the file is a "
        "JPEG.",
