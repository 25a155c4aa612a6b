"""The chunk files of an array, mapped into one range of addresses so that one NumPy call gathers rows of all of them.

Addresses are reserved for every chunk first, which costs no memory, and each file is mapped to its place when it is
needed. The places are a whole number of rows apart, so the range is one array of rows with gaps that nobody reads.
They begin at multiples of the size of a huge page where chunks are that large: the kernel then maps a cached file with
huge pages, and rows are copied about a tenth faster.
"""

import ctypes
import math
import mmap
import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_HUGE_PAGE = 2 << 20
_ADDRESSES = 4 << 40
"""The most addresses reserved for an array, of the 128 TiB that a process has."""
_MAP_FIXED = 0x10
"""The same on Linux, macOS and the BSDs; the mmap module doesn't name it."""

_libc_mmap = ctypes.CDLL(None, use_errno=True).mmap
_libc_mmap.restype = ctypes.c_void_p
_libc_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def mappable_bytes() -> int:
    """How much of the stores this process maps: half the machine's memory, less if its address space is limited."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return memory // 2 if limit == resource.RLIM_INFINITY else min(memory // 2, limit // 8)


class ChunkMaps:
    """Chunk files, mapped as they are first needed while the budget lasts; those that are not have to be read.

    A mapping is faster, but what it touches counts as the process's memory until the kernel takes it back. A file that
    cannot be mapped is left to be read, which finds out what is wrong with it. Safe to use from several threads; the
    files stay mapped until nobody refers to this object and its ``rows``.

    Attributes:
        rows: (R, ...) all chunks with the gaps between them; only rows of mapped chunks may be touched.
        places: (N,) where each row of the array is in ``rows``.
        mapped: (chunks,) bool.
        complete: whether all chunks are mapped.
    """

    def __init__(
        self, path: Callable[[int], Path], length: int, chunk: tuple[int, ...], dtype: np.dtype[Any], budget: int
    ) -> None:
        """Args:
        path: the file of a chunk.
        length: N, rows of the array.
        chunk: the shape of a chunk, rows first.
        budget: bytes of files that may be mapped.
        """
        chunks = -(-length // chunk[0])
        self._path, self._size, self._lock = path, dtype.itemsize * math.prod(chunk), threading.Lock()
        self.pitch, self.rows = _reserve(chunks, chunk, dtype)
        self._left = budget if self.pitch else 0
        self.mapped, self.complete = np.zeros(chunks, bool), False
        self.places = np.arange(length) // chunk[0] * self.pitch + np.arange(length) % chunk[0]

    def map(self, wanted: np.ndarray) -> None:
        """Map what can be mapped of the chunks ``wanted: (n,)`` that are not yet."""
        missing = wanted[~self.mapped[wanted]]
        if missing.size and self._size <= self._left:
            with self._lock:
                for index in np.unique(missing).tolist():
                    if not self.mapped[index] and self._size <= self._left:
                        self._map(index)

    def _map(self, index: int) -> None:
        try:
            with self._path(index).open("rb") as file:
                # An ordinary mapping fails harmlessly where this file cannot be mapped or is too short; a failure of a
                # fixed one may leave a hole in the reserved range.
                mmap.mmap(file.fileno(), self._size, access=mmap.ACCESS_READ).close()
                address = self.rows[index * self.pitch :].ctypes.data
                place = _libc_mmap(address, self._size, mmap.PROT_READ, mmap.MAP_SHARED | _MAP_FIXED, file.fileno(), 0)
        except (OSError, ValueError):
            return
        if place == address:
            self.mapped[index] = True
            self._left -= self._size
            self.complete = bool(self.mapped.all())


def _reserve(chunks: int, chunk: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, np.ndarray]:
    """Addresses for all chunks, as an array of rows that nobody may touch yet.

    Returns:
        rows from the beginning of a chunk to that of the next, and the array; 0 and no rows where there is no room.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    room = _ADDRESSES if limit == resource.RLIM_INFINITY else limit // 8
    row = dtype.itemsize * math.prod(chunk[1:])
    size = chunk[0] * row
    for boundary in (_HUGE_PAGE, mmap.PAGESIZE) if size >= _HUGE_PAGE else (mmap.PAGESIZE,):
        distance = math.lcm(row, boundary)
        distance *= -(-size // distance)
        length = chunks * distance
        if length + boundary <= room:
            try:
                addresses = mmap.mmap(-1, length + boundary, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)
            except OSError:
                continue
            whole = np.frombuffer(addresses, np.uint8)
            first = -whole.ctypes.data % boundary
            return distance // row, whole[first : first + length].view(dtype).reshape(-1, *chunk[1:])
    return 0, np.empty((0, *chunk[1:]), dtype)
