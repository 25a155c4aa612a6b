"""Fine-tuning of a dual encoder on pixels and captions (Peng 2025, section 2.4)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from vitcapr.batches.augment import Augmentation, PixelInput
from vitcapr.batches.texts import draw_pairs
from vitcapr.batches.tokenised import TowerCaptions
from vitcapr.config.dual_encoder import FinetunedDualEncoderConfig
from vitcapr.encoders.photographs import preprocessing_of
from vitcapr.files import sha256_bytes
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import READERS, write_tower_readers
from vitcapr.formats.tokens import TagTable
from vitcapr.models.dual_encoder import DualEncoder
from vitcapr.models.finetuned_towers import finetuned_towers, layer_rates
from vitcapr.progress import Reporter
from vitcapr.retrieval.finetuned import Untrained, captions_to_read, check_tags
from vitcapr.store.reader import FeatureStore
from vitcapr.training import distributed
from vitcapr.training.retriever import train_encoder


def finetune(
    folder: Path,
    config: FinetunedDualEncoderConfig,
    untrained: Callable[[], Untrained],
    store: FeatureStore,
    data: Manifest,
    *,
    tags: TagTable | None,
    pairs: Path | None,
    seed: int,
    device: torch.device,
    card: Mapping[str, Any],
    reporter: Reporter,
) -> None:
    """Fine-tune a dual encoder, and write its files to ``folder``.

    Args:
        untrained: makes the dual encoder, the same every time.
        store: the pixels of ``data``.
        tags: parts of speech, if a text tower adds them.
        pairs: the captions before cleaning, if the towers read these.
        card: as for :func:`train_into`, but for what is known here.
    """
    training = config.training
    first = untrained()
    check_tags(first.model, tags)
    captions = captions_to_read(data, config.languages, pairs, None)
    if training.pairs is not None:
        image_row, train = captions["image_row"].to_numpy(), data.rows("train")
        captions = captions[draw_pairs(image_row, train, training.pairs, seed=0)].reset_index(drop=True)

    def build() -> DualEncoder:
        encoder = untrained().model
        for tower in finetuned_towers(encoder):  # How the towers are computed changes nothing of what they compute.
            tower.chunk = training.chunk
        return encoder

    preprocessing = preprocessing_of(store.attributes)
    augmentation = None if training.augmentation is None else training.augmentation.to(Augmentation)
    sources = {"checkpoints": first.digests, "captions": sha256_bytes("\n".join(captions["text"]).encode())}
    train_encoder(
        folder,
        training,
        build,
        [store],
        TowerCaptions(captions, first.readers, tags),
        train=data.rows("train"),
        validation=data.rows("validation")[: training.validation_images],
        pixels=PixelInput(preprocessing, augmentation, seed),
        epoch_batches=training.epoch_batches,
        seed=seed,
        device=device,
        card={
            **card,
            "architecture": first.architecture,
            "backbone": config.image.backbone,
            "inputs": {**card["inputs"], **sources},
            "preprocessing": preprocessing.describe(),
        },
        reporter=reporter,
        rates_of=lambda model: layer_rates(model, training.layer_decay, training.encoder_rate),
    )
    if distributed.is_first():
        write_tower_readers(folder / READERS, {name: reader.describe() for name, reader in first.readers.items()})
