"""Batches of decoded pictures, for training that updates the image encoder.

>>> store = open_features("results/bert-vit/pixels/vit/manifest.json")  # doctest: +SKIP
>>> captions = CaptionRows(table["caption_row"], table["image_row"])  # doctest: +SKIP
>>> batches = PixelBatches(store, captions, manifest.rows("train"), 20, augmentation=Augmentation())  # doctest: +SKIP
>>> for batch in batches:  # doctest: +SKIP
...     loss = step(batch.features["pixels"], tokens_of(batch.texts), batch.image_index)
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from vitcapr.batches.augment import Augmentation, Draws, augment
from vitcapr.batches.loader import Batch, Batches
from vitcapr.batches.texts import CaptionRows
from vitcapr.encoders.photographs import preprocessing_of
from vitcapr.encoders.staging import to_device
from vitcapr.store.layout import PIXELS
from vitcapr.store.reader import FeatureStore


class PixelBatches(Batches):
    """Batches of a pixel store: ``pixels`` is (B, 3, S, S) float32, normalised for the image encoder.

    A batch is augmented and normalised on ``device`` when it is yielded: 8-bit pixels are copied to a GPU, and on a CPU
    the reading thread does not compete with the model.

    Args:
        augmentation: None: no augmentation, as for validation; otherwise seed and epoch determine it.
        device: of the pixels.
        store, captions, rows, batch_images, seed, epoch, options: as in :class:`Batches`.
    """

    def __init__(
        self,
        store: FeatureStore,
        captions: CaptionRows,
        rows: np.ndarray,
        batch_images: int,
        *,
        augmentation: Augmentation | None = None,
        seed: int = 0,
        epoch: int = 0,
        device: torch.device | None = None,
        **options: Any,
    ) -> None:
        options |= {"arrays": (PIXELS,), "seed": seed, "epoch": epoch, "device": device}
        super().__init__(store, captions, rows, batch_images, **options)
        self._augmentation, self._preprocessing = augmentation, preprocessing_of(store.attributes)

    def __iter__(self) -> Iterator[Batch]:
        for batch in super().__iter__():
            pixels = to_device(batch.features[PIXELS], self._device)
            if self._augmentation is not None and len(batch.rows):
                draws = Draws.of(self._augmentation, *self._seed, batch.rows.tolist())
                pixels = augment(pixels, draws, self._augmentation.radius)
            yield replace(batch, features={PIXELS: self._preprocessing.normalise(pixels, torch.float32)})
