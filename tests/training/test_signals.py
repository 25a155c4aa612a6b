import os
import signal
from collections.abc import Iterator

import pytest

from vitcapr.training.processes import stop_on_signal


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_slurm_and_srun_both_send_sigterm_and_the_training_still_saves() -> None:
    with stop_on_signal() as stop:
        assert not stop
        send(signal.SIGUSR1)
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert stop.name == "SIGUSR1"


@pytest.fixture
def keyboard() -> Iterator[None]:
    """Interruptions as in the foreground: what a shell starts in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("keyboard")
def test_a_second_interruption_from_the_keyboard_ends_the_process() -> None:
    with stop_on_signal() as stop:
        send(signal.SIGINT)
        assert stop.name == "SIGINT"
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_an_interruption_that_the_parent_ignores_does_not_stop_the_training() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            send(signal.SIGINT)
            assert not stop
            send(signal.SIGTERM)
            assert stop.name == "SIGTERM"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("keyboard")
def test_one_of_several_processes_waits_for_the_others() -> None:
    with stop_on_signal(patient=True) as stop:
        send(signal.SIGINT)
        send(signal.SIGINT)
    assert stop.name == "SIGINT"
