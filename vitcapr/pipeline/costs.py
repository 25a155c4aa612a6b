"""Who runs a job, where, and what it costs."""

import getpass
import os
import platform
import re
import resource
import socket
from pathlib import Path
from typing import Any


def measure(seconds: float) -> dict[str, Any]:
    """The facts of :class:`vitcapr.pipeline.records.Made` about this process, without its start."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "user": _user(),
        "host": socket.gethostname(),
        "platform": f"{platform.platform()}, {_processor()}, {len(os.sched_getaffinity(0))} cores",
        "seconds": round(seconds, 2),
        "cpu_seconds": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 2),
        "threads": threads(),
        "peak_memory_mb": round(max(_peak_memory(own.ru_maxrss), children.ru_maxrss) / 1024),
        "python": platform.python_version(),
    }


def threads() -> int:
    """How many torch and numpy may use: Snakemake sets the number of a job. It decides how sums are rounded."""
    return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))


def _search(pattern: str, file: str) -> str | None:
    """What a pattern matches in a file of Linux; None on another system."""
    try:
        match = re.search(pattern, Path(file).read_text(encoding="utf-8"))
    except OSError:
        return None
    return match[1] if match else None


def _processor() -> str:
    return _search(r"model name\s*: (.+)", "/proc/cpuinfo") or platform.machine()


def _peak_memory(resident: int) -> int:
    """The most memory of this process, in kB. ``resident``, its ``ru_maxrss``, counts the process that started it, too;
    Linux alone tells the two apart."""
    return int(_search(r"VmHWM:\s+(\d+) kB", "/proc/self/status") or resident)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
