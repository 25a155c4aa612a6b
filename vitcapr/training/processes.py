"""A training in several processes: torchrun starts them, and each runs the same stage with its share of every batch.

On one machine a stage does it itself, for ``training.processes`` above 1. On several machines, ``srun`` and
``torchrun`` start the stage on each: ``torchrun ... -m -- vitcapr stage train_captioner OPTIONS`` (docs/slurm.md).
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from vitcapr.encoders.precision import resolve_device
from vitcapr.errors import Preempted, UserError
from vitcapr.training import distributed
from vitcapr.training.signals import stop_on_signal

_SECONDS_BEFORE_PASSING_ON = 2.0
"""A scheduler sends a signal to all processes at once; torchrun takes a second one for an order to kill them."""


@contextmanager
def joined_processes(device: str) -> Iterator[None]:
    """Inside, this process belongs to the group that torchrun started."""
    with distributed.joined(resolve_device(device)):
        yield


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
                env={**os.environ, "OMP_NUM_THREADS": str(max(1, torch.get_num_threads() // processes))},
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
