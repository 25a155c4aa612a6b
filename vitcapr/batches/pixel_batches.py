"""Batches of decoded pictures, for training that updates the image encoder.

>>> store = open_features("results/bert-vit/pixels/vit/manifest.json")  # doctest: +SKIP
>>> captions = CaptionRows(table["caption_row"], table["image_row"])  # doctest: +SKIP
>>> batches = PixelBatches(store, captions, manifest.rows("train"), 20, augmentation=Augmentation())  # doctest: +SKIP
>>> for batch in batches:  # doctest: +SKIP
...     loss = step(batch.pixels, tokens_of(batch.caption_rows), batch.image_index)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from vitcapr.batches.augment import Augmentation, Draws, augment
from vitcapr.batches.pairs import CaptionRows, PairBatches
from vitcapr.encoders.photographs import preprocessing_of
from vitcapr.encoders.staging import to_device
from vitcapr.store.layout import PIXELS
from vitcapr.store.reader import FeatureStore


@dataclass(frozen=True)
class PixelBatch:
    """B images and their M captions.

    Attributes:
        pixels: (B, 3, S, S), normalised for the image encoder, on the requested device.
        caption_rows: (M,) int64, rows of the captions in ``captions.parquet``.
        image_index: (M,) int64, the image of each caption among the B images; increasing.
        rows: (B,) int64, rows of the images in the store and in ``images.parquet``.
    """

    pixels: torch.Tensor
    caption_rows: torch.Tensor
    image_index: torch.Tensor
    rows: torch.Tensor


class PixelBatches:
    """One epoch of batches, the same for the same seed and epoch; iterate to read them.

    A thread reads the next batches. A batch is augmented and normalised on ``device`` when it is yielded: 8-bit pixels
    are copied to a GPU, and on a CPU the thread does not compete with the model.

    Args:
        store: an open pixel store.
        captions: the captions to sample from; images without captions are skipped.
        rows: the images to sample from, for instance those of the training split.
        batch_images: B; the last batch may be smaller.
        augmentation: None: no augmentation, as for validation.
        seed, epoch: determine the order, the sampled captions and the augmentation.
        device: device of the yielded pixels, which are float32.
        options: as in :class:`PairBatches`.
    """

    def __init__(
        self,
        store: FeatureStore,
        captions: CaptionRows,
        rows: np.ndarray,
        batch_images: int,
        *,
        augmentation: Augmentation | None = None,
        captions_per_image: int | None = 1,
        seed: int = 0,
        epoch: int = 0,
        device: torch.device | None = None,
        **options: Any,
    ) -> None:
        self._augmentation, self._seed, self._epoch = augmentation, seed, epoch
        self._device = device or torch.device("cpu")
        self._preprocessing = preprocessing_of(store.attributes)
        options |= {"arrays": (PIXELS,), "captions_per_image": captions_per_image, "seed": seed, "epoch": epoch}
        options["device"] = self._device
        self._batches = PairBatches(store, captions, rows, batch_images, **options)

    def __len__(self) -> int:
        """Batches in the whole epoch, those before ``start_batch`` included."""
        return len(self._batches)

    def __iter__(self) -> Iterator[PixelBatch]:
        for batch in self._batches:
            assert isinstance(batch.texts, torch.Tensor)
            pixels = to_device(batch.features[PIXELS], self._device)
            if self._augmentation is not None and len(batch.rows):
                draws = Draws.of(self._augmentation, self._seed, self._epoch, batch.rows.tolist())
                pixels = augment(pixels, draws, self._augmentation.radius)
            normalised = self._preprocessing.normalise(pixels, torch.float32)
            yield PixelBatch(normalised, batch.texts, batch.image_index, batch.rows)
