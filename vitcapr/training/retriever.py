"""Training of a dual encoder: one objective per phase, optional hard negatives, and validation by Recall@K."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from vitcapr.batches.pairs import PairBatch, PairBatches, Texts
from vitcapr.batches.sources import FeatureSource, draw_augmented_views
from vitcapr.models.dual_encoder import DualEncoder, DualEncoders, TextBatch, side_by_side
from vitcapr.training import distributed
from vitcapr.training.contrastive import hinge_rank, info_nce, max_hinge, own_captions, sigmoid
from vitcapr.training.hard_negatives import MomentumQueue, Rule, mined_loss
from vitcapr.training.mixup import mix
from vitcapr.training.recall import recalls
from vitcapr.training.structure import structure_loss

_VALIDATION_IMAGES = 64
"""In a batch of the validation loss, where no phase of training says how many."""


@dataclass(frozen=True)
class PairPhase:
    """The settings of a phase that the task needs.

    Attributes:
        captions_per_image: drawn at random of each image; None takes all.
        margin: ``max_hinge`` and ``hinge_rank`` alone.
        hard_negatives: the rule by which wrong captions are mined; None mines none.
        hard_negative_weight: of the mined loss, which is added to the objective.
        mixup: of the Beta distribution that pairs are mixed by; 0 mixes none.
        structure: weight of the STRUCTURE loss; 0 leaves it out.
        structure_levels: how many levels of neighbours it compares.
        batch_pairs: pairs in a batch, where an epoch is every pair once; None draws images.
    """

    batch_images: int
    captions_per_image: int | None = None
    objective: Literal["info_nce", "max_hinge", "sigmoid", "hinge_rank"] = "info_nce"
    margin: float = 0.2
    hard_negatives: Rule | None = None
    hard_negative_weight: float = 0.0
    mixup: float = 0.0
    structure: float = 0.0
    structure_levels: int = 1
    batch_pairs: int | None = None


@dataclass(frozen=True)
class PhaseBatch(PairBatch):
    """A batch and the phase it belongs to."""

    phase: PairPhase


class Learner(nn.Module):
    """What a training changes: the dual encoder and, where there is one, the queue of past captions."""

    def __init__(self, encoder: DualEncoders, queue: MomentumQueue | None) -> None:
        super().__init__()
        self.encoder, self.queue = encoder, queue


class RetrieverTask:
    """Trains a dual encoder on the images and captions of a split (ViTCap-R, section III.D.3).

    Args:
        augmented_views: stores of the same images; one view of every image of a batch is drawn, validation takes all.
        train, validation: rows of the images of each split.
        queue: mine hard negatives among its captions too; None mines in the batch alone.
    """

    def __init__(
        self,
        encoder: DualEncoders,
        augmented_views: Sequence[FeatureSource],
        texts: Texts,
        *,
        train: np.ndarray,
        validation: np.ndarray,
        phases: Sequence[PairPhase],
        seed: int,
        device: torch.device,
        queue: MomentumQueue | None = None,
    ) -> None:
        self.model = Learner(encoder, queue)
        self._augmented_views, self._texts, self._phases = augmented_views, texts, phases
        self._train, self._validation = train, validation
        self._seed, self._device = seed, device

    def _open(self, phase: PairPhase, epoch: int, start: int = 0) -> PairBatches:
        return PairBatches(
            draw_augmented_views(self._augmented_views, self._seed, epoch),
            self._texts,
            self._train,
            phase.batch_images,
            arrays=self.model.encoder.image_arrays,
            captions_per_image=phase.captions_per_image,
            batch_pairs=phase.batch_pairs,
            seed=self._seed,
            epoch=epoch,
            start_batch=start,
            share=distributed.share(),
        )

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[PhaseBatch]:
        settings = self._phases[phase]
        for batch in self._open(settings, epoch, start):
            yield PhaseBatch(**vars(batch), phase=settings)

    def steps(self, phase: int) -> int:
        return len(self._open(self._phases[phase], 0))

    def _embed(self, encoder: DualEncoder, batch: PhaseBatch) -> tuple[Tensor, Tensor]:
        """Images (B, E) and captions (M, E) of length 1; for ``hinge_rank`` the images' vectors keep their length."""
        if not len(batch.rows):
            # Gradients flow back through the embeddings of an empty share as through any other.
            nothing = distributed.nothing(self.model).expand(0, encoder.embedding_dim)
            return nothing, nothing
        hinge_ranked = batch.phase.objective == "hinge_rank"
        images = encoder.image(batch.features).float() if hinge_ranked else encoder.embed_images(batch.features)
        return images, encoder.embed_texts(batch.texts)

    def _features(self, batch: PairBatch) -> dict[str, Tensor]:
        return {name: array.to(self._device) for name, array in batch.features.items()}

    def _placed(self, texts: TextBatch) -> TextBatch:
        if isinstance(texts, tuple):
            features, words = texts
            return features.to(self._device).float(), words.to(self._device)
        texts = texts.to(self._device)
        return texts.float() if texts.is_floating_point() else texts

    def loss(self, batch: PhaseBatch) -> tuple[Tensor, int]:
        """The objective a true pair, with the weighted loss of the mined captions, and how many pairs there are.

        Of an ensemble: the mean over its members. Among several processes it is the loss of the whole batch, whose
        embeddings all of them gather; counted are this process's own pairs.
        """
        index, pairs = batch.image_index.to(self._device), len(batch.image_index)
        if batch.phase.mixup and len(batch.rows):
            batch = mix(batch, batch.phase.mixup)
        batch = replace(batch, features=self._features(batch), texts=self._placed(batch.texts))
        index = distributed.gather(index + distributed.rows_before(len(batch.rows)))
        losses = [self._loss_of(encoder, batch, index) for encoder in self.model.encoder.members]
        return torch.stack(losses).mean(), pairs

    def _loss_of(self, encoder: DualEncoder, batch: PhaseBatch, index: Tensor) -> Tensor:
        phase = batch.phase
        images, captions = map(distributed.gather, self._embed(encoder, batch))
        with torch.autocast(self._device.type, enabled=False):
            similarity = images @ captions.T
            temperature = encoder.temperature()
            if phase.objective == "info_nce":
                loss = info_nce(similarity, index, temperature)
            elif phase.objective == "max_hinge":
                loss = max_hinge(similarity, index, phase.margin)
            elif phase.objective == "hinge_rank":
                loss = hinge_rank(similarity, index, phase.margin)
            else:
                assert encoder.bias is not None
                loss = sigmoid(similarity, index, temperature, encoder.bias)
            if phase.hard_negatives is not None:
                mined = self._mined(encoder, batch, similarity, images, index, temperature, phase.hard_negatives)
                loss = loss + phase.hard_negative_weight * mined
            if phase.structure:
                frozen = map(distributed.gather, self._frozen(batch))
                pairs_of_spaces = zip(frozen, (images, captions), strict=True)
                moved = [structure_loss(*each, temperature, phase.structure_levels) for each in pairs_of_spaces]
                loss = loss + phase.structure * (moved[0] + moved[1]) / 2
        return loss

    def _frozen(self, batch: PhaseBatch) -> tuple[Tensor, Tensor]:
        """What the frozen encoders make of the images, (B, D), and of their captions, (M, D).

        Of an image: CLS and, if the tower reads patches, their mean.
        """
        arrays = [array.float() for array in batch.features.values()]
        images = [array if array.ndim == 2 else array.mean(1) for array in arrays]
        texts = batch.texts[0] if isinstance(batch.texts, tuple) else batch.texts
        return torch.cat(images, dim=1), texts.float()

    def _mined(
        self,
        encoder: DualEncoder,
        batch: PhaseBatch,
        similarity: Tensor,
        images: Tensor,
        index: Tensor,
        temperature: Tensor,
        rule: Rule,
    ) -> Tensor:
        candidates, wrong = similarity, ~own_captions(index, len(images))
        queue = self.model.queue
        if queue is not None:
            rows = distributed.gather(batch.rows.to(self._device))
            queue.follow(encoder.text)
            # A copy: the backward pass still needs what the push writes over.
            candidates = torch.cat([candidates, images @ queue.captions.clone().T], dim=1)
            wrong = torch.cat([wrong, queue.wrong_for(rows)], dim=1)
            queue.push(distributed.gather(queue.see(batch.texts)), rows[index])
        return mined_loss(similarity, index, candidates, wrong, temperature, rule)

    def validate(self) -> dict[str, float]:
        """The mean InfoNCE a pair over batches as large as the last phase's, whatever its objective, and Recall@K.

        The loss of an ensemble is the mean over its members; the recalls are those of their mean cosines.
        The batches stand in the order of the rows, with all captions, so the loss is the same for the same weights.
        """
        total, seen = 0.0, 0
        images, captions, caption_image = [], [], []
        size = self._phases[-1].batch_images if self._phases else _VALIDATION_IMAGES
        members = self.model.encoder.members
        arrays = members[0].image_arrays
        augmented_views = [
            PairBatches(view, self._texts, self._validation, size, arrays=arrays, shuffle=False)
            for view in self._augmented_views
        ]
        for seen_batches in zip(*augmented_views, strict=True):
            batch = seen_batches[0]
            index = batch.image_index.to(self._device)
            views = [self._features(seen_batch) for seen_batch in seen_batches]
            placed = self._placed(batch.texts)
            of_images = [encoder.embed_augmented_views(views) for encoder in members]
            of_captions = [encoder.embed_texts(placed) for encoder in members]
            with torch.autocast(self._device.type, enabled=False):
                for encoder, mine, its in zip(members, of_images, of_captions, strict=True):
                    loss = info_nce(mine @ its.T, index, encoder.temperature())
                    total += float(loss) * len(index) / len(members)
            images.append(side_by_side(of_images).cpu().numpy())
            captions.append(side_by_side(of_captions).cpu().numpy())
            caption_image.append(batch.image_index.numpy() + seen)
            seen += len(batch.rows)
        owner = np.concatenate(caption_image)
        scores = recalls(np.concatenate(images), np.concatenate(captions), owner)
        return {"validation_loss": total / len(owner), **scores}
