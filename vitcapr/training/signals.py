"""Signals by which a scheduler or a user asks a training to stop."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ASKING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class StopRequest:
    """Set once a signal has come; looked at between two steps."""

    def __init__(self) -> None:
        self.name: str | None = None

    def __bool__(self) -> bool:
        return self.name is not None


@contextmanager
def stop_on_signal(*, patient: bool = False, then: Callable[[], None] = lambda: None) -> Iterator[StopRequest]:
    """SIGTERM, SIGUSR1 and SIGINT set the request instead of ending the process.

    Later ones count as the first: Slurm sends SIGTERM to all processes of a job, and srun passes its own on. Only a
    second SIGINT, which is a user's, ends the process as usual.

    Args:
        patient: a second SIGINT counts as the first, too. For one of several processes: torchrun passes on what the
            terminal has sent to each of them already.
        then: called at each signal.
    """
    request = StopRequest()
    previous = {number: signal.getsignal(number) for number in _ASKING}

    def ask(number: int, _: FrameType | None) -> None:
        request.name = request.name or signal.Signals(number).name
        if number == signal.SIGINT and not patient:
            signal.signal(signal.SIGINT, previous[signal.SIGINT])
        then()

    for number in _ASKING:
        signal.signal(number, ask)
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
