"""Reads an int8 array and its scales as one array of float16."""

from collections.abc import Mapping

import numpy as np
import torch

from vitcapr.artefacts.feature_manifest import SCALE
from vitcapr.features.eight_bits import dequantise
from vitcapr.features.store.reader import FeatureArray

_TOGETHER = 4
"""Rows that are multiplied at a time: few enough for the processor's cache."""


class QuantisedArray(FeatureArray):
    """An array of ``store_dtype: int8``. ``stored`` is int8, ``dtype`` float16."""

    def __init__(self, steps: FeatureArray, scale: FeatureArray) -> None:
        super().__init__(steps.directory, steps.shape, steps.chunk, steps.stored, steps.present)
        self.dtype, self._scale = np.dtype(np.float16), scale

    def gather(self, rows: np.ndarray) -> np.ndarray:
        steps, scale = torch.from_numpy(super().gather(rows)), torch.from_numpy(self._scale.gather(rows))
        out = torch.empty(steps.shape, dtype=torch.float16)
        for start in range(0, len(out), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            out[part] = dequantise(steps[part], scale[part])
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
