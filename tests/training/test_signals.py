import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from vitcapr.training.distributed import stop_on_signal


def send(*numbers: int) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)


@contextmanager
def interruptions(handler: Callable[..., Any] | signal.Handlers) -> Iterator[None]:
    """As in the foreground, by default_int_handler; what a shell starts in the background ignores them."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("handler", "patient", "signals", "name"),
    [
        (signal.default_int_handler, False, [signal.SIGUSR1, signal.SIGTERM, signal.SIGTERM], "SIGUSR1"),
        (signal.default_int_handler, True, [signal.SIGINT, signal.SIGINT], "SIGINT"),
        (signal.SIG_IGN, False, [signal.SIGINT], None),
        (signal.SIG_IGN, False, [signal.SIGINT, signal.SIGTERM], "SIGTERM"),
    ],
    ids=["slurm and srun", "one of several processes", "ignored by the parent", "ignored, then stopped"],
)
def test_the_first_signal_that_counts_is_kept(
    handler: Any, patient: bool, signals: list[int], name: str | None
) -> None:
    with interruptions(handler):
        with stop_on_signal(patient=patient) as stop:
            assert not stop
            send(*signals)
            assert stop.name == name
        assert signal.getsignal(signal.SIGINT) is handler


def test_a_second_interruption_from_the_keyboard_ends_the_process() -> None:
    with interruptions(signal.default_int_handler), stop_on_signal() as stop:
        send(signal.SIGINT)
        assert stop.name == "SIGINT"
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
