import os
import signal

import pytest

from vitcapr.training.signals import stop_on_signal


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_slurm_and_srun_both_send_sigterm_and_the_training_still_saves() -> None:
    with stop_on_signal() as stop:
        assert not stop
        send(signal.SIGUSR1)
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert stop.name == "SIGUSR1"


def test_a_second_interruption_from_the_keyboard_ends_the_process() -> None:
    with stop_on_signal() as stop:
        send(signal.SIGINT)
        assert stop.name == "SIGINT"
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_one_of_several_processes_waits_for_the_others() -> None:
    with stop_on_signal(patient=True) as stop:
        send(signal.SIGINT)
        send(signal.SIGINT)
    assert stop.name == "SIGINT"
