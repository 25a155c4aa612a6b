"""Who may write which chunks of a store that several processes, of several people, may fill at once.

A claim is a lock on a range of bytes of one small file in the store's folder, a byte a chunk. Tasks that own different
chunks work side by side; a second task for the same chunks waits, and then finds them finished. The system lets go of a
claim when its process ends, however it ends. NFS locks ranges of bytes across machines, and so does Lustre that is
mounted with flock.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vitcapr.errors import UserError

LOCK = "writers.lock"


@contextmanager
def claimed(store: Path, chunks: range, say: Callable[[str], None]) -> Iterator[None]:
    """Hold ``chunks`` of the store in folder ``store`` against all other processes, having waited for those before.

    Args:
        say: is told if this process has to wait.

    Raises:
        UserError: this user may not write there.
    """
    descriptor = _open(store)
    try:
        if chunks:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, len(chunks), chunks.start)
            except BlockingIOError:
                say(f"another process is filling the same chunks; waiting for it ({store})")
                fcntl.lockf(descriptor, fcntl.LOCK_EX, len(chunks), chunks.start)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def alone(store: Path) -> Iterator[bool]:
    """Whether no process holds a claim on any chunk and this one may write; if so, none gets one in the block."""
    try:
        descriptor = _open(store)
    except UserError:
        yield False
        return
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        yield False
        return
    try:
        yield True
    finally:
        os.close(descriptor)


def _open(store: Path) -> int:
    try:
        store.mkdir(parents=True, exist_ok=True)
        return os.open(store / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            remedy = "have someone fill it who may, or name a folder of your own in VITCAPR_STORES"
            raise UserError(
                "the feature store is not finished and you may not write to it", where=store, remedy=remedy
            ) from error
        raise
