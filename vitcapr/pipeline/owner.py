"""The owner of a job: one process at a time works on it, on all machines that share the folder of results.

Snakemake may be killed while its jobs live on, and two runs may make the same result. The job that comes second waits.
The lock is a lease of filelock: a file that its owner touches. It holds on network file systems without locks.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import SoftFileLease, Timeout

from vitcapr.errors import EXIT_PREEMPTED
from vitcapr.files import write_text

LEASE_SECONDS = 120.0
"""An owner that has touched its lock for so long is dead. NFS shows the time of a file up to 60 seconds late."""
_EMPTY_SECONDS = 10.0
_PATIENCE = 2.0
"""Seconds in which the lock of a dead process of this machine is taken over."""


@contextmanager
def owned(record: Path, say: Callable[[str], None]) -> Iterator[bool]:
    """Own the job of a run record, and yield whether another was at work; ``say`` receives a line if so."""
    record.parent.mkdir(parents=True, exist_ok=True)
    lock, name = record.with_suffix(".lock"), record.with_suffix(".owner")
    job, host, other = os.environ.get("SLURM_JOB_ID"), socket.gethostname(), _read(name)
    of_job = "" if job is None else f"Slurm job {job}, "
    if job and other.startswith(of_job) and not other.endswith(f" on {host}"):
        lock.unlink(missing_ok=True)  # Slurm has ended a job of one node before it starts it on another.
    lease = SoftFileLease(lock, lease_duration=LEASE_SECONDS, on_compromise=lambda _: _end(record))
    waited = False
    while True:
        with suppress(Timeout):
            lease.acquire(timeout=_PATIENCE, poll_interval=0.2)
            break
        if not waited:
            say(f"{_read(name) or 'another process'} works on this job: waiting for its end ({lock})")
        waited = True
        _remove_empty(lock)
    try:
        write_text(name, f"{of_job}process {os.getpid()} on {host}")
        yield waited
    finally:
        name.unlink(missing_ok=True)
        lease.release()


def _remove_empty(lock: Path) -> None:
    """Remove a lock that a process made and did not live to write into. filelock does not know whether it lives."""
    with suppress(FileNotFoundError):
        state = lock.stat()
        if not state.st_size and time.time() - state.st_mtime > _EMPTY_SECONDS:
            lock.unlink()


def _read(name: Path) -> str:
    try:
        return name.read_text(encoding="utf-8")
    except OSError:
        return ""


def _end(record: Path) -> None:
    """End this process and those that it started, without a further write: another owner has the files now."""
    import psutil

    print(f"error: another process has taken over this job, or its lock was deleted ({record})", file=sys.stderr)
    sys.stderr.flush()
    for child in psutil.Process().children(recursive=True):
        child.kill()
    os._exit(EXIT_PREEMPTED)
