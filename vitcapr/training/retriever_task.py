"""Training of a dual encoder: one objective per phase, optional hard negatives, and validation by Recall@K."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitcapr.batches.image_batches import Batch, Batches
from vitcapr.batches.sources import FeatureSource, draw_augmented_views
from vitcapr.batches.texts import Texts
from vitcapr.config.objective import Pairs
from vitcapr.config.training import DualEncoderPhaseConfig, RetrieverPhaseConfig
from vitcapr.encoders.devices import to_device
from vitcapr.metrics.ranks import rank_matches
from vitcapr.models.dual_encoder_model import DualEncoder, DualEncoders, side_by_side
from vitcapr.retrieval.embedder import place_texts
from vitcapr.training import distributed
from vitcapr.training.contrastive import info_nce, mined_loss, structure_loss
from vitcapr.training.outcome import check_scalar

Step = tuple[DualEncoderPhaseConfig, Batch]
Prepare = Callable[[dict[str, Tensor], list[int], int | None], dict[str, Tensor]]


class RetrieverTask:
    """Trains a dual encoder on the images and captions of a split (ViTCap-R, section III.D.3).

    Args:
        augmented_views: stores of the same images; one view of every image of a batch is drawn, validation takes all.
        train, validation: rows of the images of each split.
        prepare: makes the input of the image tower, from the arrays of a batch, its rows and the epoch of training;
            None for validation.
        epoch_batches: most batches of an epoch; None: the whole split.
    """

    def __init__(
        self,
        encoder: DualEncoders,
        augmented_views: Sequence[FeatureSource],
        texts: Texts,
        *,
        train: np.ndarray,
        validation: np.ndarray,
        phases: Sequence[DualEncoderPhaseConfig],
        seed: int,
        device: torch.device,
        prepare: Prepare | None = None,
        epoch_batches: int | None = None,
    ) -> None:
        self.model = encoder
        self._augmented_views, self._texts, self._phases = augmented_views, texts, phases
        self._train, self._validation, self._epoch_batches = train, validation, epoch_batches
        self._seed, self._device, self._prepare = seed, device, prepare

    def _open(self, phase: DualEncoderPhaseConfig, epoch: int, start: int = 0) -> Batches:
        return Batches(
            draw_augmented_views(self._augmented_views, self._seed, epoch),
            self._texts,
            self._train,
            phase.batch_images,
            arrays=self.model.image_arrays,
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
        most = None if self._epoch_batches is None else self._epoch_batches - start
        for batch in islice(self._open(settings, epoch, start), most):
            yield settings, self._placed(batch, epoch)

    def steps(self, phase: int) -> int:
        whole = len(self._open(self._phases[phase], 0))
        return whole if self._epoch_batches is None else min(whole, self._epoch_batches)

    def _placed(self, batch: Batch, epoch: int | None = None) -> Batch:
        """Return the batch on the device, as the image tower reads it."""
        features = {name: to_device(array, self._device) for name, array in batch.features.items()}
        if self._prepare is not None:
            features = self._prepare(features, batch.rows.tolist(), epoch)
        return replace(batch, features=features, texts=place_texts(batch.texts, self._device))

    def _embed(self, encoder: DualEncoder, batch: Batch, keep_length: bool) -> tuple[Tensor, Tensor]:
        """Images (B, E) and captions (M, E) of length 1; with ``keep_length``, images keep theirs."""
        if not len(batch.rows):
            # Gradients flow back through the embeddings of an empty share as through any other.
            empty = distributed.zero_loss(self.model).expand(0, encoder.embedding_dim)
            return empty, empty
        images = encoder.image(batch.features).float() if keep_length else encoder.embed_images(batch.features)
        return images, encoder.embed_texts(batch.texts)

    def loss(self, batch: Step) -> tuple[Tensor, int]:
        """Return the objective a true pair, with the weighted loss of the mined captions, and how many pairs there are.

        Of an ensemble: the mean over its members. Among several processes it is the loss of the whole batch, whose
        embeddings all of them gather; counted are this process's own pairs.
        """
        phase, pairs = batch
        index = to_device(pairs.image_index, self._device)
        if isinstance(phase, RetrieverPhaseConfig) and phase.mixup and len(pairs.rows):
            pairs = mix(pairs, phase.mixup)
        index = distributed.gather(index + distributed.rows_before(len(pairs.rows)))
        losses = [self._member_loss(encoder, phase, pairs, index) for encoder in self.model.members]
        return torch.stack(losses).mean(), len(pairs.image_index)

    def _member_loss(self, encoder: DualEncoder, phase: DualEncoderPhaseConfig, batch: Batch, index: Tensor) -> Tensor:
        embedded = self._embed(encoder, batch, not phase.objective.unit_images)
        images, captions = map(distributed.gather, embedded)
        rows = distributed.gather(to_device(batch.rows, self._device))
        with torch.autocast(self._device.type, enabled=False):
            similarity = images @ captions.T
            temperature = encoder.temperature()
            loss = phase.objective.loss(Pairs(images, captions, similarity, index, rows, temperature, encoder.bias))
            check_scalar(loss, phase.objective)
            if phase.hard_negatives is not None:
                mined = mined_loss(similarity, index, temperature, phase.hard_negatives)
                loss = loss + mined
            if isinstance(phase, RetrieverPhaseConfig) and phase.structure:
                frozen = map(distributed.gather, _frozen(batch))
                pairs_of_spaces = zip(frozen, (images, captions), strict=True)
                moved = [structure_loss(*each, temperature) for each in pairs_of_spaces]
                loss = loss + phase.structure * (moved[0] + moved[1]) / 2
        return loss

    def validate(self) -> dict[str, float]:
        """Return the mean loss a pair, and Recall@K.

        The loss is InfoNCE, or the objective of the last phase if it ``validates``, without that of mined captions.
        A batch has ``batch_images`` images of the last phase (64 where training counts pairs) with all captions.
        The loss of an ensemble is the mean over its members; the recalls are those of their mean cosines.
        The batches stand in the order of the rows, with all captions, so the loss is the same for the same weights.
        """
        total, seen = 0.0, 0
        images, captions, caption_image = [], [], []
        last, members = self._phases[-1], self.model.members
        options: dict[str, Any] = {"arrays": self.model.image_arrays, "shuffle": False, "device": self._device}
        augmented_views = [
            Batches(view, self._texts, self._validation, last.batch_images, **options) for view in self._augmented_views
        ]
        for seen_batches in zip(*augmented_views, strict=True):
            placed = list(map(self._placed, seen_batches))
            batch, views = placed[0], [each.features for each in placed]
            index = to_device(batch.image_index, self._device)
            of_images = [encoder.embed_augmented_views(views) for encoder in members]
            of_captions = [encoder.embed_texts(batch.texts) for encoder in members]
            with torch.autocast(self._device.type, enabled=False):
                for encoder, mine, its in zip(members, of_images, of_captions, strict=True):
                    pairs = Pairs(mine, its, mine @ its.T, index, batch.rows, encoder.temperature(), encoder.bias)
                    if last.objective.validates:
                        loss = last.objective.loss(pairs)
                    else:
                        loss = info_nce(pairs.similarity, index, pairs.temperature)
                    total += float(loss) * len(index) / len(members)
            images.append(side_by_side(of_images).cpu().numpy())
            captions.append(side_by_side(of_captions).cpu().numpy())
            caption_image.append(batch.image_index.numpy() + seen)
            seen += len(batch.rows)
        owner = np.concatenate(caption_image)
        scores = recalls(np.concatenate(images), np.concatenate(captions), owner)
        return {"validation_loss": total / len(owner), **scores}


def _frozen(batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the frozen features of the images, (B, D), and of their captions, (M, D).

    Those of an image are CLS and, if the tower reads patches, their mean.
    """
    arrays = [array.float() for array in batch.features.values()]
    images = [array if array.ndim == 2 else array.mean(1) for array in arrays]
    texts = batch.texts[0] if isinstance(batch.texts, tuple) else batch.texts
    return torch.cat(images, dim=1), texts.float()


def mix(batch: Batch, alpha: float) -> Batch:
    """Feature mixup: each image moved towards another one, and its captions by the same share towards that one's.

    Zhang et al. 2018, on features instead of pixels. The share that stays is drawn once for the batch, from
    Beta(alpha, alpha), and its larger side taken, so that a mixed pair still is the pair of its own image. Draws are
    of torch's global generator, whose state a checkpoint keeps.

    Args:
        batch: its texts are features, not words. Captions are grouped by image; the j-th of an image meets the j-th of
            the other one, counted round where that one has fewer.
        alpha: above 0; small values mix little.
    """
    images, index = len(batch.rows), batch.image_index
    share = float(torch.distributions.Beta(alpha, alpha).sample())
    share = max(share, 1 - share)
    partner = torch.randperm(images)
    counts = torch.bincount(index, minlength=images)
    begin = counts.cumsum(0) - counts
    place = torch.arange(len(index)) - begin[index]
    other = partner[index]
    caption = begin[other] + place % counts[other]
    assert isinstance(batch.texts, Tensor)
    features = {name: _between(array, array[partner], share) for name, array in batch.features.items()}
    return replace(batch, features=features, texts=_between(batch.texts, batch.texts[caption], share))


def _between(one: Tensor, other: Tensor, share: float) -> Tensor:
    """Mix two arrays in float32: float16 would round the mixture."""
    return torch.lerp(other.float(), one.float(), share)


def recalls(images: np.ndarray, captions: np.ndarray, caption_image: np.ndarray) -> dict[str, float]:
    """Return recall@1/5/10 in percent in both directions, and their sum rsum (0 to 600).

    Ranks are computed as for the reported scores.

    Args:
        images: (N, E), captions: (M, E), grouped in the order of the images.
        caption_image: (M,) the image of each caption.
    """
    ranks = rank_matches(images, captions, caption_image)
    scores = {
        f"validation_{name}_recall_{k}": 100 * float(np.mean(side <= k))
        for name, side in (("i2t", ranks.i2t), ("t2i", ranks.t2i))
        for k in (1, 5, 10)
    }
    return {"validation_rsum": sum(scores.values()), **scores}
