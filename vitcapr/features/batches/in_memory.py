"""Features in memory, with the interface of a store: for small data and for comparisons."""

import numpy as np


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
