"""Fine-tuning of a dual encoder on pixels and captions (Peng 2025, section 2.4)."""

from collections.abc import Callable
from pathlib import Path

from vitcapr.batches.texts import draw_pairs
from vitcapr.encoders.image_recipe import preprocessing_of
from vitcapr.extensions.finetuning.augment import Augmentation, PixelInput
from vitcapr.extensions.finetuning.config import FinetunedDualEncoderConfig
from vitcapr.extensions.finetuning.finetuned import Untrained, captions_to_read, check_tags
from vitcapr.extensions.finetuning.finetuned_towers import finetuned_towers, layer_rates
from vitcapr.extensions.finetuning.text_files import READERS, TagTable, write_tower_readers
from vitcapr.extensions.finetuning.tokenised import TowerCaptions
from vitcapr.files import sha256_bytes
from vitcapr.formats.manifest import Manifest
from vitcapr.models.dual_encoder_model import DualEncoder
from vitcapr.store.reader import FeatureStore
from vitcapr.training import distributed
from vitcapr.training.outcome import TrainingJob
from vitcapr.training.retriever import DualEncoderTrainer


def finetune(
    job: TrainingJob,
    config: FinetunedDualEncoderConfig,
    untrained: Callable[[], Untrained],
    store: FeatureStore,
    data: Manifest,
    *,
    tags: TagTable | None,
    pairs: Path | None,
) -> None:
    """Fine-tune a dual encoder, and write its files.

    Args:
        job: its card lacks what is known here.
        untrained: makes the dual encoder, the same every time.
        store: the pixels of ``data``.
        tags: parts of speech, if a text tower adds them.
        pairs: the captions before cleaning, if the towers read these.
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
    job = job.describe(
        architecture=first.architecture,
        backbone=config.image.backbone,
        inputs={**job.card["inputs"], **sources},
        preprocessing=preprocessing.describe(),
    )
    texts, validation = TowerCaptions(captions, first.readers, tags), data.rows("validation")
    trainer = DualEncoderTrainer(
        job, training, [store], texts, data.rows("train"), validation[: training.validation_images]
    )
    trainer.fit(
        build,
        rates_of=lambda model: layer_rates(model, training.layer_decay, training.encoder_rate),
        prepare=PixelInput(preprocessing, augmentation, job.seed),
        epoch_batches=training.epoch_batches,
    )
    if distributed.is_first():
        readers = {name: reader.describe() for name, reader in first.readers.items()}
        write_tower_readers(job.folder / READERS, readers)
