"""Fine-tune a dual encoder: a ViT and BERT-family text models together, on decoded pictures and captions."""

from functools import partial
from typing import Any

from vitcapr.config.finetuned_dual_encoder import EXECUTION_ONLY, FinetuneSettings
from vitcapr.formats.kinds import (
    BackboneFolder,
    DualEncoderTrainingFolder,
    ManifestFile,
    PairsFile,
    PixelsFile,
    TagsFile,
    TokenizerFile,
)
from vitcapr.pipeline.stage import CodeHash, In, Out, Source, stage
from vitcapr.progress import Reporter


@stage(
    device="finetuned.training.device",
    processes="finetuned.training.processes",
    execution_only={f"finetuned.training.{key}" for key in EXECUTION_ONLY},
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
    pairs: In[PairsFile] | None = None,
) -> None:
    """Fine-tune a dual encoder. After an interruption by a signal, the same command continues with bit-identical
    results."""
    import torch

    from vitcapr.batches.augment import Augmentation
    from vitcapr.batches.pairs import CaptionRows
    from vitcapr.batches.tokenised import TowerCaptions
    from vitcapr.encoders.photographs import preprocessing_of
    from vitcapr.encoders.precision import dtype_name, resolve_device, resolve_dtype
    from vitcapr.files import sha256_bytes, sha256_file
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.model import READERS, write_tower_readers
    from vitcapr.formats.tokens import TagTable
    from vitcapr.models.finetuned_dual_encoder import layer_rates
    from vitcapr.retrieval.finetuned import captions_to_read, check_pixels, check_tags
    from vitcapr.retrieval.finetuned_towers import untrained_finetuned
    from vitcapr.store.reader import open_features
    from vitcapr.training.distributed import is_first
    from vitcapr.training.finetuning import FinetuningTask
    from vitcapr.training.outcome import train_into

    wanted, training = settings.finetuned, settings.finetuned.training
    device = resolve_device(training.device)
    dtype = resolve_dtype(training.precision, device)
    data, store = read_manifest(manifest), open_features(pixels)
    check_pixels(store, data, pixels)
    seed = wanted.seed_in(settings.seed)
    begun = partial(untrained_finetuned, settings, store, str(backbone or source), tokenizers or {})
    model, architecture, readers, digests = begun()
    words = None if tags is None else TagTable.read(tags)
    check_tags(model, words)
    captions = captions_to_read(data, wanted.languages, pairs, None)
    rows, tokens = (
        CaptionRows(captions["caption_row"].to_numpy(), captions["image_row"].to_numpy()),
        TowerCaptions(captions, readers, words),
    )

    def make_task() -> FinetuningTask:
        torch.manual_seed(seed)
        untrained = begun()[0]
        for tower in untrained.towers:  # How the towers are computed changes nothing of what they compute.
            if training.checkpoint_layers:
                encoder: Any = tower.encoder
                encoder.gradient_checkpointing_enable({"use_reentrant": False})
            if training.compile:
                tower.compile()
        return FinetuningTask(
            untrained,
            store,
            rows,
            tokens,
            train=data.rows("train"),
            validation=data.rows("validation")[: training.validation_images],
            phases=training.phases,
            augmentation=None if training.augmentation is None else training.augmentation.to(Augmentation),
            chunk=training.chunk,
            epoch_batches=training.epoch_batches,
            seed=seed,
            device=device,
        )

    def rates_of(untrained: Any) -> list[tuple[list[torch.nn.Parameter], float]]:
        groups = layer_rates(untrained, training.layer_decay, training.encoder_rate)
        return [(group.parameters, group.scale) for group in groups]

    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    report.line(
        f"{sum(p.numel() for p in model.parameters()):,} weights, {trained:,} of them trained, "
        f"{len(rates_of(model))} learning rates, {dtype_name(dtype)} on {device}"
    )
    del model
    train_into(
        finetuned,
        make_task,
        training,
        sweep=[] if training.sweep is None else training.sweep.learning_rate,
        card={
            "architecture": architecture,
            "backbone": wanted.image.backbone,
            "code": code,
            "inputs": {
                "pixels": store.fingerprint,
                "tags": None if tags is None else sha256_file(tags),
                "pairs": None if pairs is None else sha256_file(pairs),
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
        rates_of=rates_of,
    )
    if is_first():
        write_tower_readers(finetuned / READERS, {name: reader.describe() for name, reader in readers.items()})
