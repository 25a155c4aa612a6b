"""Signals by which a scheduler or a user asks a training to stop."""

import signal
from collections.abc import Iterator
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
def stop_on_signal() -> Iterator[StopRequest]:
    """SIGTERM, SIGUSR1 and SIGINT set the request instead of ending the process; a second one ends it as usual."""
    request = StopRequest()
    previous = {number: signal.getsignal(number) for number in _ASKING}

    def ask(number: int, _: FrameType | None) -> None:
        request.name = signal.Signals(number).name
        restore()

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    for number in _ASKING:
        signal.signal(number, ask)
    try:
        yield request
    finally:
        restore()
