"""Which process of a training this is, by what torchrun sets in the environment. It needs no torch."""

import os


def is_started_by_torchrun() -> bool:
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def is_first_process() -> bool:
    """Whether this process reports and writes: the first that torchrun started, or the only one."""
    return os.environ.get("RANK", "0") == "0"
