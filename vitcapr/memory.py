"""Keeps the large temporaries of one batch mapped until the next."""

import ctypes
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Names of glibc's ``mallopt`` parameters in ``malloc.h``."""

_LARGEST = 1 << 30
_PAD = 1 << 26


def keep_freed_memory() -> bool:
    """Let the C library reuse blocks below 1 GiB instead of giving each back to the kernel.

    By default glibc maps a large block anew for every tensor and the kernel clears it page by page, which a step
    on a CPU waits for. With the setting, the process keeps the memory of its largest step until it ends.

    Returns:
        Whether the C library took the setting; others than glibc go on as they were.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        setting = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    values = {_MMAP_THRESHOLD: _LARGEST, _TRIM_THRESHOLD: _LARGEST, _TOP_PAD: _PAD}
    taken = [setting(ctypes.c_int(name), ctypes.c_int(value)) for name, value in values.items()]
    return all(taken)
