"""Zarr stores that other programs made: remote, compressed, or cut up in other ways.

Picking single rows from such a store decompresses a whole chunk for each, a hundred times the work. So whole chunks
are read and a few kept, and training draws its images block by block (``loader.block_order``).
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import zarr

from vitcapr.errors import UserError

_CHUNKS_IN_BLOCK = 4


class ZarrArray:
    """An array of a Zarr store, read in whole chunks along its first axis, the latest few kept in memory."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype: np.dtype[Any] = np.dtype(array.dtype)
        shards = getattr(array, "shards", None)
        self.chunk = int((shards or array.chunks)[0])
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()

    def __len__(self) -> int:
        return self.shape[0]

    def _chunk(self, index: int) -> np.ndarray:
        if index in self._kept:
            self._kept.move_to_end(index)
        else:
            while len(self._kept) >= 2 * _CHUNKS_IN_BLOCK:
                self._kept.popitem(last=False)
            self._kept[index] = np.asarray(self._array[index * self.chunk : (index + 1) * self.chunk])
        return self._kept[index]

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Rows ``(n,)`` in the order asked for: ``(n, ...)``."""
        rows = np.asarray(rows)
        if rows.size and (rows.min() < 0 or rows.max() >= len(self)):
            raise IndexError(f"rows from {rows.min()} to {rows.max()} of an array of {len(self)} rows")
        out = np.empty((rows.size, *self.shape[1:]), self.dtype)
        chunks = rows // self.chunk
        for index in np.unique(chunks):
            here = chunks == index
            out[here] = self._chunk(int(index))[rows[here] - index * self.chunk]
        return out


class ZarrFeatures(Mapping[str, ZarrArray]):
    """The arrays of a Zarr group; made by :func:`open_zarr`."""

    def __init__(self, group: Any) -> None:
        self.attributes: dict[str, Any] = dict(group.attrs)
        self.arrays = {name: ZarrArray(array) for name, array in group.arrays()}
        self.block = _CHUNKS_IN_BLOCK * max(array.chunk for array in self.arrays.values())

    def __getitem__(self, name: str) -> ZarrArray:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


def open_zarr(location: Any) -> ZarrFeatures:
    """Open a Zarr group that has no sealed manifest: a path, a URL that fsspec knows, or a Zarr store object.

    Raises:
        UserError: there is no Zarr group, or none with arrays.
    """
    try:
        group = zarr.open_group(location, mode="r")
    except (FileNotFoundError, zarr.errors.GroupNotFoundError) as error:
        raise UserError("no Zarr group", where=location, remedy="check the path") from error
    if next(iter(group.arrays()), None) is None:
        raise UserError("the Zarr group has no arrays", where=location)
    return ZarrFeatures(group)
