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
    """SIGTERM, SIGUSR1 and SIGINT set the request instead of ending the process; a second one ends it as usual.

    Args:
        patient: later ones count as the first. For one of several processes: torchrun passes on a signal that the
            scheduler has sent to each of them already.
        then: called at each signal.
    """
    request = StopRequest()
    previous = {number: signal.getsignal(number) for number in _ASKING}

    def ask(number: int, _: FrameType | None) -> None:
        request.name = signal.Signals(number).name
        if not patient:
            restore()
        then()

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    for number in _ASKING:
        signal.signal(number, ask)
    try:
        yield request
    finally:
        restore()
