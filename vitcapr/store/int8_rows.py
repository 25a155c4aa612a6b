"""Reads an int8 array and its scales as one array of float16."""

from collections.abc import Mapping

import numpy as np
import torch

from vitcapr.formats.store_manifest import SCALE
from vitcapr.store.reader import FeatureArray

_MOST = 32_767
"""Numbers that are multiplied at a time. torch multiplies so few in one thread; several threads would wait for one
another beside those of a training."""


class QuantisedArray(FeatureArray):
    """An array of ``store_dtype: int8``. ``stored`` is int8, ``dtype`` float16."""

    def __init__(self, steps: FeatureArray, scale: FeatureArray) -> None:
        super().__init__(steps.directory, steps.shape, steps.chunk, steps.stored, steps.present)
        self.dtype, self._scale = np.dtype(np.float16), scale

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """As :meth:`FeatureArray.gather`; a row is that of :func:`~vitcapr.store.int8.dequantise`."""
        rows = self._checked(rows)
        scale = torch.from_numpy(self._scale.gather(rows)).float()[:, None]
        out = torch.empty((rows.size, *self.shape[1:]), dtype=torch.float16)
        product = torch.empty(self.shape[1:])
        numbers, together = product.numpy(), max(1, _MOST // self.shape[-1])
        parts = product.split(together)
        for target, factor, row in zip(out, scale, rows.tolist(), strict=True):
            np.copyto(numbers, self._row(row))
            for part, place in zip(parts, target.split(together), strict=True):
                place.copy_(part.mul_(factor))
        return np.asarray(out.numpy())

    def close(self) -> None:
        super().close()
        self._scale.close()


def joined(arrays: Mapping[str, FeatureArray]) -> dict[str, FeatureArray]:
    """The arrays that a store shows: an int8 array and its scales are one."""
    return {
        name: QuantisedArray(array, arrays[name + SCALE]) if name + SCALE in arrays else array
        for name, array in arrays.items()
        if not name.endswith(SCALE)
    }
