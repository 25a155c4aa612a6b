"""Fine-tuning of a dual encoder on pixels and captions (Peng 2025, section 2.4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from vitcapr.batches.augment import Augmentation
from vitcapr.batches.pixel_batches import CaptionRows, PixelBatch, PixelBatches
from vitcapr.batches.tokenised import TowerCaptions
from vitcapr.models.finetuned_dual_encoder import FinetunedDualEncoder
from vitcapr.retrieval.finetuned import embed_captions, embed_pixels
from vitcapr.store.reader import FeatureStore
from vitcapr.training import distributed
from vitcapr.training.contrastive import info_nce
from vitcapr.training.pooled_loss import pooled_loss
from vitcapr.training.recall import recalls

_BLOCK = 64
"""Images of a validation batch, whose captions all come with them: no batch of training is so wide."""


@dataclass(frozen=True)
class FinetuningPhase:
    """The settings of a phase that the task needs.

    Attributes:
        captions_per_image: drawn at random of each image; None takes all.
        shift: rho of equation 4, ``pooled`` alone; None takes the least that keeps the loss from being negative.
        batch_pairs: pairs in a batch, where an epoch is every pair once; None draws images.
    """

    batch_images: int
    captions_per_image: int | None = 1
    objective: Literal["info_nce", "pooled"] = "info_nce"
    shift: float | None = None
    batch_pairs: int | None = None

    def loss(self, similarity: Tensor, image_index: Tensor, temperature: Tensor) -> Tensor:
        if self.objective == "pooled":
            return pooled_loss(similarity, image_index, temperature, self.shift)
        return info_nce(similarity, image_index, temperature)


@dataclass(frozen=True)
class PixelPhaseBatch(PixelBatch):
    """A batch and the phase it belongs to."""

    phase: FinetuningPhase


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
        phases: Sequence[FinetuningPhase],
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

    def _open(self, phase: FinetuningPhase, epoch: int, start: int = 0) -> PixelBatches:
        return PixelBatches(
            self._store,
            self._captions,
            self._train,
            phase.batch_images,
            augmentation=self._augmentation,
            captions_per_image=phase.captions_per_image,
            batch_pairs=phase.batch_pairs,
            seed=self._seed,
            epoch=epoch,
            start_batch=start,
            share=distributed.share(),
            device=self._device,
        )

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[PixelPhaseBatch]:
        settings = self._phases[phase]
        for batch in islice(self._open(settings, epoch, start), self.steps(phase) - start):
            yield PixelPhaseBatch(**vars(batch), phase=settings)

    def steps(self, phase: int) -> int:
        whole = len(self._open(self._phases[phase], 0))
        return whole if self._epoch_batches is None else min(whole, self._epoch_batches)

    def loss(self, batch: PixelPhaseBatch) -> tuple[Tensor, int]:
        """The phase's objective, and how many true pairs are this process's own.

        Among several processes it is the loss of the whole batch, whose embeddings all of them gather.
        """
        images, captions = self._embed(batch) if len(batch.rows) else self._embedded_nothing()
        pairs = len(captions)
        index = distributed.gather(batch.image_index.to(self._device) + distributed.rows_before(len(images)))
        images, captions = distributed.gather(images), distributed.gather(captions)
        with torch.autocast(self._device.type, enabled=False):
            return batch.phase.loss(images @ captions.T, index, self.model.temperature()), pairs

    def _embed(self, batch: PixelPhaseBatch) -> tuple[Tensor, Tensor]:
        images = embed_pixels(self.model, batch.pixels, self._chunk)
        return images, embed_captions(self.model, self._tokens, batch.caption_rows, self._device, self._chunk)

    def _embedded_nothing(self) -> tuple[Tensor, Tensor]:
        """The embeddings of an empty share, (0, E) twice; gradients flow back through them as through any other."""
        nothing = distributed.nothing(self.model).expand(0, self.model.embedding_dim)
        return nothing, nothing

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
            of_images = embed_pixels(self.model, batch.pixels)
            of_captions = embed_captions(self.model, self._tokens, batch.caption_rows, self._device)
            images.append(of_images.cpu().numpy())
            captions.append(of_captions.cpu().numpy())
            owners.append(batch.image_index.numpy() + seen)
            seen += len(of_images)
            index = batch.image_index.to(self._device)
            with torch.autocast(self._device.type, enabled=False):
                loss = phase.loss(of_images @ of_captions.T, index, self.model.temperature())
            total += float(loss) * len(of_images)
        scores = recalls(np.concatenate(images), np.concatenate(captions), np.concatenate(owners))
        return {"validation_loss": total / seen, **scores}
