"""How a process uses the cores and the memory of its machine, and which process of a training it is. Needs no torch."""

import ctypes
import os

SPIN_COUNT = "10000"
"""How often a thread of torch's OpenMP looks for work before it sleeps (GNU's default: 300,000).

On a busy machine, the other threads of an operation wait for one that has no core. With the default, they use up what
the others need: two threads took three times as long. On an idle machine, this count costs 1 to 2 percent of time.
"""
_KEPT_BYTES = 2**30
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # The numbers of mallopt(3).


def prepare_process() -> None:
    """Let waiting threads sleep soon, and let freed memory stay with the process. Call it before torch is imported.

    GNU's allocator gives a freed block of more than 32 MB back to the system. The next tensor of this size is new
    memory, and the system fills each of its pages with zeros. Here, blocks of up to a GiB stay and are used again.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # Other systems have none.
    if mallopt is not None and mallopt(_MMAP_THRESHOLD, _KEPT_BYTES):  # An older one may refuse, and nothing changes.
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


def is_started_by_torchrun() -> bool:
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def is_first_process() -> bool:
    """Whether this process reports and writes: the first that torchrun started, or the only one."""
    return os.environ.get("RANK", "0") == "0"
