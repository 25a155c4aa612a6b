"""Features in memory, with the interface of a store: for small data and for what is read many times."""

import numpy as np
import torch

from vitcapr.batches.loader import FeatureSource, array_of

_ROWS = 256
"""Images whose patches are in memory at a time."""


class MemoryArray:
    """One array (N, ...), row by row."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def gather(self, rows: np.ndarray) -> np.ndarray:
        return np.take(self.values, rows, axis=0)


class MemoryFeatures(dict[str, MemoryArray]):
    """Arrays of the same images by their names: ``MemoryFeatures(cls=MemoryArray(values))``."""

    block = 1


def with_mean_patch(store: FeatureSource) -> MemoryFeatures:
    """``cls`` (N, D) and the mean patch as ``patches`` (N, 1, D) float32, so that no epoch reads the patches again.

    Batches are drawn in the order in which they are drawn from ``store``.

    Raises:
        UserError: the features have no patches.
    """
    cls, all_patches = array_of(store, "cls"), array_of(store, "patches")
    images = len(cls)
    means = []
    for first in range(0, images, _ROWS):
        patches = all_patches.gather(np.arange(first, min(first + _ROWS, images)))
        means.append(torch.from_numpy(patches).mean(1, keepdim=True, dtype=torch.float32).numpy())
    features = MemoryFeatures(
        cls=MemoryArray(cls.gather(np.arange(images))), patches=MemoryArray(np.concatenate(means))
    )
    features.block = store.block
    return features
