"""Reads an int8 array and its scales as one array of float16."""

from collections.abc import Mapping

import numpy as np
import torch

from vitcapr.artefacts.feature_manifest import SCALE
from vitcapr.features.store.reader import FeatureArray

_MOST = 32_767
"""Numbers that are multiplied at a time. They stay in the processor's cache, and torch multiplies so few in one thread:
several would wait for one another beside the threads of a training."""


class QuantisedArray(FeatureArray):
    """An array of ``store_dtype: int8``. ``stored`` is int8, ``dtype`` float16."""

    def __init__(self, steps: FeatureArray, scale: FeatureArray) -> None:
        super().__init__(steps.directory, steps.shape, steps.chunk, steps.stored, steps.present)
        self.dtype, self._scale = np.dtype(np.float16), scale

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """As :meth:`FeatureArray.gather`; a row is that of :func:`~vitcapr.features.eight_bits.dequantise`."""
        rows = self._checked(rows)
        scale = torch.from_numpy(self._scale.gather(rows)).float()[:, None]
        out = torch.empty((rows.size, *self.shape[1:]), dtype=torch.float16)
        patches, channels = self.shape[1:]
        together = max(1, _MOST // channels)
        product = torch.empty(min(together, patches), channels)
        for at, row in enumerate(rows.tolist()):
            steps = self._row(row)
            for first in range(0, patches, together):
                part = product[: min(together, patches - first)]
                np.copyto(part.numpy(), steps[first : first + together])
                out[at, first : first + together].copy_(part.mul_(scale[at]))
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
