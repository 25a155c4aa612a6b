"""Fine-tune a dual encoder: a ViT and BERT-family text models together, on decoded pictures and captions."""

from vitcapr.config.finetuned_dual_encoder import NOT_DECIDING, FinetuneSettings
from vitcapr.declaration.kinds import (
    BackboneFolder,
    DualEncoderTrainingFolder,
    ManifestFile,
    PixelsFile,
    TagsFile,
    TokenizerFile,
)
from vitcapr.declaration.stage import CodeHash, In, Out, Source, stage
from vitcapr.progress import Reporter


@stage(
    device="finetuned.training.device",
    processes="finetuned.training.processes",
    execution_only={f"finetuned.training.{key}" for key in NOT_DECIDING},
)
def finetune(
    pixels: In[PixelsFile],
    manifest: In[ManifestFile],
    settings: FinetuneSettings,
    report: Reporter,
    code: CodeHash,
    finetuned: Out[DualEncoderTrainingFolder],
    source: Source = "",
    backbone: In[BackboneFolder] | None = None,
    tokenizers: dict[str, In[TokenizerFile]] | None = None,
    tags: In[TagsFile] | None = None,
) -> None:
    """Fine-tune a dual encoder. After an interruption by a signal, the same command continues with bit-identical
    results."""
    import torch

    from vitcapr.artefacts.manifest import read_manifest
    from vitcapr.artefacts.tags import TagTable
    from vitcapr.artefacts.tower_readers import READERS, write_tower_readers
    from vitcapr.building.finetuned_dual_encoder import assembled, check_pixels, prepare
    from vitcapr.building.recipe import recipe_of
    from vitcapr.features.batches.augment import Augmentation
    from vitcapr.features.batches.pixel_batches import CaptionRows
    from vitcapr.features.batches.tokenised import TokenisedCaptions
    from vitcapr.features.encoders.photographs import preprocessing_of
    from vitcapr.features.encoders.precision import dtype_name, resolve_device, resolve_dtype
    from vitcapr.features.store.reader import open_features
    from vitcapr.files import sha256_bytes, sha256_file
    from vitcapr.models.finetuned_dual_encoder import layer_rates
    from vitcapr.retrieval.finetuned import check_tags
    from vitcapr.training.distributed import is_first
    from vitcapr.training.finetuning import FinetuningPhase, FinetuningTask
    from vitcapr.training.outcome import train_into

    wanted, training = settings.finetuned, settings.finetuned.training
    device = resolve_device(training.device)
    dtype = resolve_dtype(training.precision, device)
    data, store = read_manifest(manifest), open_features(pixels)
    check_pixels(store, data, pixels)
    seed = wanted.seed_in(settings.seed)
    torch.manual_seed(seed)
    model, architecture, readers, digests = assembled(settings, store, str(backbone or source), tokenizers or {})
    words = None if tags is None else TagTable.read(tags)
    check_tags(model, words)
    captions = data.captions_of()
    captions = captions[captions["language"].isin(wanted.languages)].reset_index(drop=True)
    task = FinetuningTask(
        model,
        store,
        CaptionRows.of_table(captions),
        TokenisedCaptions(captions, readers, words),
        train=data.rows("train"),
        validation=data.rows("validation")[: training.validation_images],
        phases=[
            FinetuningPhase(p.batch_images, p.captions_per_image, p.objective, p.shift, p.batch_pairs)
            for p in training.phases
        ],
        augmentation=None if training.augmentation is None else Augmentation(**training.augmentation.canonical()),
        chunk=training.chunk,
        epoch_batches=training.epoch_batches,
        seed=seed,
        device=device,
    )
    prepare(model, training)
    groups = layer_rates(model, training.layer_decay, training.encoder_rate)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    report.line(
        f"{sum(p.numel() for p in model.parameters()):,} weights, {trained:,} of them trained, "
        f"{len(groups)} learning rates, {dtype_name(dtype)} on {device}"
    )
    train_into(
        finetuned,
        task,
        recipe_of(training, select_by=training.select_by),
        card={
            "architecture": architecture,
            "backbone": wanted.image.backbone,
            "code": code,
            "inputs": {
                "pixels": store.fingerprint,
                "tags": None if tags is None else sha256_file(tags),
                "checkpoints": digests,
                "captions": sha256_bytes("\n".join(captions["text"]).encode()),
                "images": sha256_bytes("\n".join(data.images["split"]).encode()),
            },
            "preprocessing": preprocessing_of(store.attributes).describe(),
            "settings": settings.canonical(),
        },
        device=device,
        dtype=dtype,
        reporter=report,
        rates=[(group.parameters, group.scale) for group in groups],
    )
    if is_first():
        write_tower_readers(finetuned / READERS, {name: reader.describe() for name, reader in readers.items()})
