"""Augmented views: several stores of the same images, for example mirrored or at another size."""

from collections.abc import Sequence

import numpy as np

from vitcapr.batches.loader import FeatureSource, GatheredArray

_STREAM = 1
"""Stream of the generator. Batches sample their order and captions from another stream of this seed and epoch."""


class _DrawnArray:
    """Row i of one of several arrays of the same shape, ``view[i]``."""

    def __init__(self, arrays: Sequence[GatheredArray], view: np.ndarray) -> None:
        self._arrays, self._view = arrays, view

    def __len__(self) -> int:
        return len(self._view)

    def gather(self, rows: np.ndarray) -> np.ndarray:
        view = self._view[rows]
        parts = [array.gather(rows[view == number]) for number, array in enumerate(self._arrays)]
        gathered = np.empty((len(rows), *parts[0].shape[1:]), np.result_type(*parts))
        for number, part in enumerate(parts):
            gathered[view == number] = part
        return gathered


class AugmentedViews:
    """One view of every image, sampled in each epoch from the seed and the epoch, in any batch or process.

    Args:
        augmented_views: stores of the same images, their arrays of the same shapes.
    """

    def __init__(self, augmented_views: Sequence[FeatureSource], seed: int, epoch: int) -> None:
        self._augmented_views, self._seed = augmented_views, np.random.SeedSequence([seed, epoch], spawn_key=(_STREAM,))

    @property
    def block(self) -> int:
        return max(view.block for view in self._augmented_views)

    def __getitem__(self, name: str) -> _DrawnArray:
        arrays = [view[name] for view in self._augmented_views]
        # Every array starts the stream anew, so that all arrays of an image are from the same view.
        return _DrawnArray(arrays, np.random.default_rng(self._seed).integers(len(arrays), size=len(arrays[0])))


def draw_augmented_views(augmented_views: Sequence[FeatureSource], seed: int, epoch: int) -> FeatureSource:
    """The features of an epoch of training; a single view is returned unchanged."""
    return augmented_views[0] if len(augmented_views) == 1 else AugmentedViews(augmented_views, seed, epoch)
