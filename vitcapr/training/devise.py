"""Training DeViSE with its hinge rank loss."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from vitcapr.features.batches.loader import FeatureSource
from vitcapr.features.batches.pairs import FeatureTexts, PairBatch, PairBatches
from vitcapr.models.devise import Devise
from vitcapr.training.contrastive import own_captions, true_pairs
from vitcapr.training.recall import recalls


def hinge_rank_loss(scores: Tensor, image_index: Tensor, margin: float) -> Tensor:
    """The sum over wrong texts j of ``max(0, margin - score of the true text + score of j)``, the mean over captions.

    Frome et al. 2013, equation 1: from an image to texts alone. They stop at the first text that breaks the margin;
    here all of the batch count. Captions of the same image are not wrong.

    Args:
        scores: (B, M) float32, an image's mapped features times a text's unit vector.
        image_index: (M,) int64, the image of each caption.
    """
    true = true_pairs(scores, image_index)
    wrong = scores[image_index]
    own = own_captions(image_index, len(scores))[image_index]
    broken = torch.relu(margin - true[:, None] + wrong).masked_fill(own, 0.0)
    return broken.sum(1).mean()


class DeviseTask:
    """Image features pulled towards the mean word vectors of their captions.

    Args:
        texts: the vectors of the captions to train and validate on.
        train, validation: rows of the images of each split.
    """

    def __init__(
        self,
        model: Devise,
        store: FeatureSource,
        texts: FeatureTexts,
        *,
        train: np.ndarray,
        validation: np.ndarray,
        batch_images: int,
        captions_per_image: int | None,
        margin: float,
        seed: int,
        device: torch.device,
    ) -> None:
        self.model = model
        self._store, self._texts, self._train, self._validation = store, texts, train, validation
        self._size, self._captions, self._margin = batch_images, captions_per_image, margin
        self._seed, self._device = seed, device

    def _open(self, epoch: int, start: int = 0) -> PairBatches:
        return PairBatches(
            self._store,
            self._texts,
            self._train,
            self._size,
            arrays=("cls",),
            captions_per_image=self._captions,
            seed=self._seed,
            epoch=epoch,
            start_batch=start,
        )

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[PairBatch]:  # noqa: ARG002
        yield from self._open(epoch, start)

    def steps(self, phase: int) -> int:  # noqa: ARG002
        return len(self._open(0))

    def loss(self, batch: PairBatch) -> tuple[Tensor, int]:
        features, texts, index = self._placed(batch)
        mapped = self.model(features)
        with torch.autocast(self._device.type, enabled=False):
            return hinge_rank_loss(mapped.float() @ texts.T, index, self._margin), len(index)

    def validate(self) -> dict[str, float]:
        """The mean hinge rank loss a caption over batches in the order of the rows, and Recall@K."""
        total, seen = 0.0, 0
        images, captions, owners = [], [], []
        rows = PairBatches(
            self._store, self._texts, self._validation, self._size, arrays=("cls",), captions_per_image=1, shuffle=False
        )
        for batch in rows:
            features, texts, index = self._placed(batch)
            total += float(hinge_rank_loss(self.model(features).float() @ texts.T, index, self._margin)) * len(index)
            images.append(self.model.embed_images(features).cpu().numpy())
            captions.append(texts.cpu().numpy())
            owners.append(batch.image_index.numpy() + seen)
            seen += len(batch.rows)
        owner = np.concatenate(owners)
        return {
            "validation_loss": total / len(owner),
            **recalls(np.concatenate(images), np.concatenate(captions), owner),
        }

    def _placed(self, batch: PairBatch) -> tuple[Tensor, Tensor, Tensor]:
        device = self._device
        assert isinstance(batch.texts, Tensor)
        return batch.features["cls"].to(device).float(), batch.texts.to(device).float(), batch.image_index.to(device)
