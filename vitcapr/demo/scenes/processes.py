"""A function of 0, 1, 2 and so on in several processes, with the results in this order.

Each process sends its results through a pipe of its own. The processes of Python's pools share a pipe and its lock, and
a process that is killed while it holds the lock can stop the pool for ever.
"""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from vitcapr.errors import UserError

WORTH_A_PROCESS = 16
"""Calls that take about as long as the start of a process."""


@contextmanager
def mapped(make: Callable[[int], Any], number: int, processes: int) -> Iterator[Iterator[Any]]:
    """``make`` of 0 to ``number - 1``, a function that can be pickled. Few calls are made in this process.

    What a process is ahead of the reader waits in its pipe, which holds 64 kB on Linux.

    Raises:
        UserError: a process was killed.
        Exception: what ``make`` raised.
    """
    count = min(processes, number // WORTH_A_PROCESS)
    if count <= 1:
        yield map(make, range(number))
        return
    workers = [_start(make, range(first, number, count)) for first in range(count)]
    try:
        yield (_received(workers[index % count][1]) for index in range(number))
    finally:
        for process, _ in workers:
            process.kill()
            process.join()


def _start(make: Callable[[int], Any], indices: range) -> tuple[Any, Connection]:
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_send_each, args=(make, indices, sending), daemon=True)
    process.start()
    sending.close()  # So that the pipe ends with the process.
    return process, receiving


def _received(connection: Connection) -> Any:
    try:
        result = connection.recv()
    except (EOFError, OSError) as error:
        raise UserError(
            "a process that rendered pictures was killed",
            remedy="run it again; if memory ran out, with fewer CPU cores (taskset) or with more memory",
        ) from error
    if isinstance(result, Exception):
        raise result
    return result


def _send_each(make: Callable[[int], Any], indices: range, connection: Connection) -> None:
    """Send the results, or the first error instead. A process whose parent has ended ends when it sends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process.
    try:
        for index in indices:
            connection.send(make(index))
    except BrokenPipeError:
        return
    except Exception as error:
        connection.send(error)
