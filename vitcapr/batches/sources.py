"""Sources of features: what a batch needs of a store, the views of an augmentation, and features in memory."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from vitcapr.encoders.devices import to_device
from vitcapr.store.reader import FeatureStore

_STREAM = 1
"""Stream of the generator of views. Batches sample their order and captions from another stream of this seed and
epoch."""
_ROWS = 256
"""Images whose patches are in memory at a time."""


class GatheredArray(Protocol):
    """An array with access to single rows: :class:`vitcapr.store.reader.FeatureArray`, or one in memory.

    Attributes:
        chunk: rows that lie in one file.
    """

    @property
    def chunk(self) -> int: ...

    def __len__(self) -> int: ...

    def gather(self, rows: np.ndarray) -> np.ndarray: ...


class FeatureSource(Protocol):
    """The source of batches: :class:`vitcapr.store.reader.FeatureStore`, or arrays in memory."""

    def __getitem__(self, name: str) -> GatheredArray: ...


def read_rows(source: FeatureSource, names: Sequence[str], rows: np.ndarray, device: torch.device) -> dict[str, Tensor]:
    """Rows of arrays by their names, on ``device``."""
    return {name: to_device(torch.from_numpy(source[name].gather(rows)), device) for name in names}


def feature_dims(store: FeatureStore, arrays: Sequence[str]) -> dict[str, int]:
    """Return the widths of the inputs of a model that reads these arrays.

    ``feature_dim`` is the width of the patches, or of CLS without patches. ``cls_dim`` is the width of CLS, if it
    differs from that of the patches.

    Raises:
        UserError: the store lacks an array.
    """
    width, *others = (store[name].shape[-1] for name in sorted(arrays, reverse=True))
    return {"feature_dim": width, **({"cls_dim": others[0]} if others and others[0] != width else {})}


def check_widths(store: FeatureStore, arrays: Sequence[str], architecture: Mapping[str, Any]) -> None:
    """Check that a model of this architecture can read the arrays of a store.

    Raises:
        UserError: the store lacks an array, or it has another width.
    """
    for name in arrays:
        store.check_width(name, architecture.get(f"{name}_dim", architecture["feature_dim"]))


class _DrawnArray:
    """Row i of one of several arrays of the same shape, ``view[i]``."""

    def __init__(self, arrays: Sequence[GatheredArray], view: np.ndarray) -> None:
        self._arrays, self._view, self.chunk = arrays, view, arrays[0].chunk

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
    """Augmented views: a random one of every image in each epoch, drawn from the seed and the epoch.

    The draw is the same in any batch and process.

    Args:
        augmented_views: stores of the same images, their arrays of the same shapes.
    """

    def __init__(self, augmented_views: Sequence[FeatureSource], seed: int, epoch: int) -> None:
        self._augmented_views, self._seed = augmented_views, np.random.SeedSequence([seed, epoch], spawn_key=(_STREAM,))

    def __getitem__(self, name: str) -> _DrawnArray:
        arrays = [view[name] for view in self._augmented_views]
        # Every array starts the stream anew, so that all arrays of an image are from the same view.
        return _DrawnArray(arrays, np.random.default_rng(self._seed).integers(len(arrays), size=len(arrays[0])))


def draw_augmented_views(augmented_views: Sequence[FeatureSource], seed: int, epoch: int) -> FeatureSource:
    """Return the features of an epoch of training; a single view is returned unchanged."""
    return augmented_views[0] if len(augmented_views) == 1 else AugmentedViews(augmented_views, seed, epoch)


class MemoryArray:
    """An array (N, ...) in memory, read row by row."""

    chunk = 1

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def gather(self, rows: np.ndarray) -> np.ndarray:
        return np.take(self.values, rows, axis=0)


class MemoryFeatures(dict[str, MemoryArray]):
    """Arrays of the same images by their names: ``MemoryFeatures(cls=MemoryArray(values))``."""


def with_mean_patch(store: FeatureSource) -> MemoryFeatures:
    """``cls`` (N, D) and the mean patch as ``patches`` (N, 1, D) float32, so that no epoch reads the patches again."""
    cls, all_patches = store["cls"], store["patches"]
    images = len(cls)
    means = []
    for first in range(0, images, _ROWS):
        patches = all_patches.gather(np.arange(first, min(first + _ROWS, images)))
        means.append(torch.from_numpy(patches).mean(1, keepdim=True, dtype=torch.float32).numpy())
    return MemoryFeatures(cls=MemoryArray(cls.gather(np.arange(images))), patches=MemoryArray(np.concatenate(means)))
