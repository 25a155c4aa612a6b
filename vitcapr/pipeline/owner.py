"""The owner of a job: one process at a time works on it, on all machines that share the folder of results.

Snakemake may be killed while its jobs live on, and two runs may make the same result. The job that comes second waits.
The lock is a lease of filelock: a file that its owner touches. It holds on network file systems without locks.
"""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import SoftFileLease, Timeout

from vitcapr.errors import EXIT_PREEMPTED
from vitcapr.files import write_text

LEASE_SECONDS = 120.0
"""An owner that has touched its lock for so long is dead. NFS shows the time of a file up to 60 seconds late."""
_PATIENCE = 2.0
"""Seconds in which the lock of a dead process of this machine is taken over."""


@contextmanager
def owned(record: Path, say: Callable[[str], None]) -> Iterator[bool]:
    """Own the job of a run record, and yield whether another owner was at work until now.

    Args:
        say: receives one line if this process has to wait.
    """
    record.parent.mkdir(parents=True, exist_ok=True)
    lock, name = record.with_suffix(".lock"), record.with_suffix(".owner")
    job, start = (os.environ.get(variable, "0") for variable in ("SLURM_JOB_ID", "SLURM_RESTART_COUNT"))
    of_job, of_start = f"Slurm job {job}, ", f"Slurm job {job}, start {start}, "
    other = _read(name)
    if other.startswith(of_job) and not other.startswith(of_start):
        lock.unlink(missing_ok=True)  # Slurm starts a job again only after its earlier start has ended.
    lease = SoftFileLease(lock, lease_duration=LEASE_SECONDS, on_compromise=lambda _: _end(record))
    waited = False
    try:
        lease.acquire(timeout=_PATIENCE, poll_interval=0.2)
    except Timeout:
        say(f"{_read(name) or 'another process'} works on this job: waiting for its end ({lock})")
        lease.acquire(poll_interval=1)
        waited = True
    try:
        process = f"process {os.getpid()} on {socket.gethostname()}"
        write_text(name, process if job == "0" else of_start + process)
        yield waited
    finally:
        name.unlink(missing_ok=True)
        lease.release()


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
