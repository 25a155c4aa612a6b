"""A training in several processes: torchrun starts them, and each runs the same stage with its share of every batch.

On one machine a stage does it itself, for ``training.processes`` above 1. On several machines, ``srun`` and
``torchrun`` start the stage on each: ``torchrun ... -m -- vitcapr stage train_captioner --job FILE`` (docs/slurm.md).
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import torch

from vitcapr.encoders.precision import resolve_device
from vitcapr.errors import Preempted, UserError

_ASKING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
"""Signals by which a scheduler or a user asks a training to stop."""
_SECONDS_BEFORE_PASSING_ON = 2.0
"""A scheduler sends a signal to all processes at once; torchrun takes a second one for an order to kill them."""


class StopRequest:
    """Set once a signal has come; looked at between two steps."""

    def __init__(self) -> None:
        self.name: str | None = None

    def __bool__(self) -> bool:
        return self.name is not None


@contextmanager
def stop_on_signal(*, patient: bool = False, then: Callable[[], None] = lambda: None) -> Iterator[StopRequest]:
    """SIGTERM, SIGUSR1 and SIGINT set the request instead of ending the process. An ignored SIGINT stays ignored.

    Later ones count as the first: Slurm sends SIGTERM to all processes of a job, and srun passes its own on. Only a
    second SIGINT, which is a user's, ends the process as usual.

    Args:
        patient: a second SIGINT counts as the first, too. For one of several processes: torchrun passes on what the
            terminal has sent to each of them already.
        then: called at each signal.
    """
    request = StopRequest()
    previous = {number: signal.getsignal(number) for number in _ASKING}
    if previous[signal.SIGINT] is signal.SIG_IGN:  # As in the background; SIGUSR1 is ignored for stages to catch.
        del previous[signal.SIGINT]

    def ask(number: int, _: FrameType | None) -> None:
        request.name = request.name or signal.Signals(number).name
        if number == signal.SIGINT and not patient:
            signal.signal(signal.SIGINT, previous[signal.SIGINT])
        then()

    for number in previous:
        signal.signal(number, ask)
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def run_processes(stage: str, processes: int, device: str, arguments: Sequence[str]) -> None:
    """Run a stage with ``arguments`` in several processes of this machine, and wait for them.

    Raises:
        Preempted: a signal came; the training has saved its state and the same call continues it.
        UserError: there are fewer GPUs than processes.
        SystemExit: a process failed; it has said why.
    """
    gpus = torch.cuda.device_count()
    if resolve_device(device).type == "cuda" and processes > gpus:
        raise UserError(
            f"{processes} processes cannot share {gpus} GPU{'s' * (gpus != 1)}",
            where="training.processes",
            remedy="ask for as many GPUs as processes, or train on the CPU with device: cpu",
        )
    environment = {**os.environ, "OMP_NUM_THREADS": str(max(1, torch.get_num_threads() // processes))}
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # torchrun would catch it nevertheless.
        environment["PET_SIGNALS_TO_HANDLE"] = "SIGTERM,SIGHUP,SIGQUIT"
    torchruns: list[subprocess.Popen[bytes]] = []

    def end_torchrun() -> None:
        for torchrun in torchruns:
            torchrun.send_signal(signal.SIGTERM)

    def pass_on() -> None:
        threading.Timer(_SECONDS_BEFORE_PASSING_ON, end_torchrun).start()

    with stop_on_signal(patient=True, then=pass_on) as stop:
        torchruns.append(
            subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", *torchrun_arguments(stage, processes, arguments)],
                env=environment,
                # torchrun knows nothing of SIGUSR1 and would die of it; its processes set handlers of their own.
                preexec_fn=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
            )
        )
        code = torchruns[0].wait()
    if stop and code:
        raise Preempted(f"training in {processes} processes, after {stop.name}")
    if code:
        sys.exit(1)


def torchrun_arguments(stage: str, processes: int, arguments: Sequence[str]) -> list[str]:
    """What torchrun is called with. Behind ``--``, or it takes the stage's ``--log`` for one of its own options."""
    return ["--standalone", f"--nproc-per-node={processes}", "-m", "--", "vitcapr", "stage", stage, *arguments]
