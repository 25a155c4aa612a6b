"""Fine-tuning of a dual encoder on pixels and captions (Peng 2025, section 2.4)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitcapr.batches.augment import Augmentation
from vitcapr.batches.loader import Batch
from vitcapr.batches.pixel_batches import PixelBatches
from vitcapr.batches.texts import CaptionRows
from vitcapr.batches.tokenised import TowerCaptions
from vitcapr.config.finetuned_dual_encoder import FinetunedDualEncoderConfig, FinetuningPhaseConfig
from vitcapr.encoders.photographs import preprocessing_of
from vitcapr.encoders.precision import dtype_name, resolve_dtype
from vitcapr.encoders.staging import to_device
from vitcapr.files import sha256_bytes
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import READERS, write_tower_readers
from vitcapr.formats.tokens import TagTable
from vitcapr.models.finetuned_dual_encoder import FinetunedDualEncoder, layer_rates
from vitcapr.progress import Reporter
from vitcapr.retrieval.finetuned import captions_to_read, check_tags, embed_captions, embed_pixels
from vitcapr.retrieval.finetuned_towers import Untrained
from vitcapr.store.layout import PIXELS
from vitcapr.store.reader import FeatureStore
from vitcapr.training import distributed
from vitcapr.training.contrastive import info_nce, pooled_loss
from vitcapr.training.outcome import Rates, train_into
from vitcapr.training.recall import recalls

_BLOCK = 64
"""Images of a validation batch, whose captions all come with them: no batch of training is so wide."""


Step = tuple[FinetuningPhaseConfig, Batch]


def _loss(phase: FinetuningPhaseConfig, similarity: Tensor, image_index: Tensor, temperature: Tensor) -> Tensor:
    if phase.objective == "pooled":
        return pooled_loss(similarity, image_index, temperature, phase.shift)
    return info_nce(similarity, image_index, temperature)


class FinetuningTask:
    """Trains a fine-tuned dual encoder on the images and captions of a split.

    Args:
        captions: those to train and validate on, and the same as tokens.
        train, validation: rows of the images of each split.
        augmentation: of the pictures trained on.
        chunk: images, and captions of a tower, that are computed at a time. What lies between is thrown away and
            computed again on the way back (GradCache, Gao et al. 2021), with the same random numbers, so that the
            gradient is that of the whole batch; None computes the batch at once.
        epoch_batches: batches of an epoch; None takes the whole split.
    """

    def __init__(
        self,
        finetuned: FinetunedDualEncoder,
        store: FeatureStore,
        captions: CaptionRows,
        tokens: TowerCaptions,
        *,
        train: np.ndarray,
        validation: np.ndarray,
        phases: Sequence[FinetuningPhaseConfig],
        augmentation: Augmentation | None,
        chunk: int | None,
        epoch_batches: int | None,
        seed: int,
        device: torch.device,
    ) -> None:
        self.model = finetuned
        self._store, self._captions, self._tokens, self._phases = store, captions, tokens, phases
        self._train, self._validation, self._augmentation = train, validation, augmentation
        self._chunk, self._epoch_batches, self._seed, self._device = chunk, epoch_batches, seed, device

    def _open(self, phase: FinetuningPhaseConfig, epoch: int, start: int = 0) -> PixelBatches:
        return PixelBatches(
            self._store,
            self._captions,
            self._train,
            phase.batch_images,
            augmentation=self._augmentation,
            captions_per_image=phase.captions_per_image,
            batch_pairs=phase.batch_pairs,
            shuffle_chunks=phase.shuffle_chunks,
            seed=self._seed,
            epoch=epoch,
            start_batch=start,
            share=distributed.share(),
            device=self._device,
        )

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[Step]:
        settings = self._phases[phase]
        for batch in islice(self._open(settings, epoch, start), self.steps(phase) - start):
            yield settings, batch

    def steps(self, phase: int) -> int:
        whole = len(self._open(self._phases[phase], 0))
        return whole if self._epoch_batches is None else min(whole, self._epoch_batches)

    def loss(self, batch: Step) -> tuple[Tensor, int]:
        """The phase's objective, and how many true pairs are this process's own.

        Among several processes it is the loss of the whole batch, whose embeddings all of them gather.
        """
        phase, read = batch
        if len(read.rows):
            images = embed_pixels(self.model, read.features[PIXELS], self._chunk)
            captions = embed_captions(self.model, self._tokens, read.texts, self._device, self._chunk)
        else:  # Gradients flow back through the embeddings of an empty share as through any other.
            images = captions = distributed.zero_loss(self.model).expand(0, self.model.embedding_dim)
        pairs = len(captions)
        index = distributed.gather(to_device(read.image_index, self._device) + distributed.rows_before(len(images)))
        images, captions = distributed.gather(images), distributed.gather(captions)
        with torch.autocast(self._device.type, enabled=False):
            return _loss(phase, images @ captions.T, index, self.model.temperature()), pairs

    def validate(self) -> dict[str, float]:
        """The last phase's objective, a mean over batches in the order of the rows with all captions; and Recall@K."""
        phase = self._phases[-1]
        total, seen = 0.0, 0
        images, captions, owners = [], [], []
        rows = PixelBatches(
            self._store,
            self._captions,
            self._validation,
            min(phase.batch_images, _BLOCK),
            captions_per_image=None,
            shuffle=False,
            device=self._device,
        )
        for batch in rows:
            of_images = embed_pixels(self.model, batch.features[PIXELS])
            of_captions = embed_captions(self.model, self._tokens, batch.texts, self._device)
            images.append(of_images.cpu().numpy())
            captions.append(of_captions.cpu().numpy())
            owners.append(batch.image_index.numpy() + seen)
            seen += len(of_images)
            index = to_device(batch.image_index, self._device)
            with torch.autocast(self._device.type, enabled=False):
                loss = _loss(phase, of_images @ of_captions.T, index, self.model.temperature())
            total += float(loss) * len(of_images)
        scores = recalls(np.concatenate(images), np.concatenate(captions), np.concatenate(owners))
        return {"validation_loss": total / seen, **scores}


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
    dtype = resolve_dtype(training.precision, device)
    model, architecture, readers, checkpoints = untrained()
    check_tags(model, tags)
    languages = [language for tower in config.text.values() for language in tower.languages]
    captions = captions_to_read(data, languages, pairs, None)
    rows = CaptionRows(captions["caption_row"].to_numpy(), captions["image_row"].to_numpy())
    tokens = TowerCaptions(captions, readers, tags)

    def make_task() -> FinetuningTask:
        torch.manual_seed(seed)
        finetuned = untrained().model
        for tower in finetuned.towers:  # How the towers are computed changes nothing of what they compute.
            if training.checkpoint_layers:
                encoder: Any = tower.encoder
                encoder.gradient_checkpointing_enable({"use_reentrant": False})
        return FinetuningTask(
            finetuned,
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

    def rates_of(finetuned: Any) -> Rates:
        return layer_rates(finetuned, training.layer_decay, training.encoder_rate)

    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    reporter.line(
        f"{sum(p.numel() for p in model.parameters()):,} weights, {trained:,} of them trained, "
        f"{len(list(rates_of(model)))} learning rates, {dtype_name(dtype)} on {device}"
    )
    del model
    sources = {"checkpoints": checkpoints, "captions": sha256_bytes("\n".join(captions["text"]).encode())}
    train_into(
        folder,
        make_task,
        training,
        sweep=[] if training.sweep is None else training.sweep.learning_rate,
        card={
            **card,
            "architecture": architecture,
            "backbone": config.image.backbone,
            "inputs": {**card["inputs"], **sources},
            "preprocessing": preprocessing_of(store.attributes).describe(),
        },
        device=device,
        dtype=dtype,
        reporter=reporter,
        rates_of=rates_of,
    )
    if distributed.is_first():
        write_tower_readers(folder / READERS, {name: reader.describe() for name, reader in readers.items()})
