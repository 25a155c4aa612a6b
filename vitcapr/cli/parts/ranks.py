"""A training in several processes: torchrun starts them, and each runs the same command as one rank of a group.

On one machine the command does it itself, for ``training.processes`` above 1. On several, ``srun`` and ``torchrun``
start this module on each: ``torchrun ... -m -- vitcapr.cli.parts.ranks train_captioner OPTIONS`` (docs/slurm.md).
"""

import importlib
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import torch
import typer

from vitcapr.errors import EXIT_BAD_INPUT, Preempted, UserError
from vitcapr.progress import Reporter
from vitcapr.training import distributed
from vitcapr.training.signals import stop_on_signal

_SECONDS_BEFORE_PASSING_ON = 2.0
"""A scheduler sends a signal to all processes at once; the agent takes a second one for impatience."""


def are_to_be_started(processes: int) -> bool:
    """Whether this process is the one that starts the others, and not yet one of them."""
    return processes > 1 and not distributed.is_started_by_torchrun()


def start_ranks(stage: str, processes: int, device: torch.device, arguments: Sequence[str]) -> None:
    """Run ``stage`` with ``arguments`` in ``processes`` processes of this machine, and wait for them.

    Raises:
        Preempted: a signal came; the training has saved its state and the same call continues it.
        UserError: there are fewer GPUs than processes.
        SystemExit: a process failed; it has said why.
    """
    gpus = torch.cuda.device_count()
    if device.type == "cuda" and processes > gpus:
        raise UserError(
            f"{processes} processes cannot share {gpus} GPU{'s' * (gpus != 1)}",
            where="training.processes",
            remedy="ask for as many GPUs as processes, or train on the CPU with device: cpu",
        )
    agents: list[subprocess.Popen[bytes]] = []

    def end_agent() -> None:
        for agent in agents:
            agent.send_signal(signal.SIGTERM)

    def pass_on() -> None:
        threading.Timer(_SECONDS_BEFORE_PASSING_ON, end_agent).start()

    with stop_on_signal(patient=True, then=pass_on) as stop:
        agents.append(
            subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", *torchrun_arguments(stage, processes, arguments)],
                env={**os.environ, "OMP_NUM_THREADS": str(max(1, torch.get_num_threads() // processes))},
                # torchrun knows nothing of SIGUSR1 and would die of it; the ranks set handlers of their own.
                preexec_fn=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
            )
        )
        code = agents[0].wait()
    if stop and code:
        raise Preempted(f"training in {processes} processes, after {stop.name}")
    if code:
        sys.exit(1)


def torchrun_arguments(stage: str, processes: int, arguments: Sequence[str]) -> list[str]:
    """What torchrun is called with. Behind ``--``, or it takes the stage's ``--log`` for short of its own options."""
    return ["--standalone", f"--nproc-per-node={processes}", "-m", "--", "vitcapr.cli.parts.ranks", stage, *arguments]


def reporter_of_rank(log: Path | None) -> Reporter:
    """Rank 0 speaks for all."""
    return Reporter(log) if distributed.is_first_started() else Reporter(stream=io.StringIO())


def _be_a_rank(stage: str, arguments: Sequence[str]) -> int:
    """The exit code of one rank of ``stage``."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(importlib.import_module(f"vitcapr.cli.{stage}").main)
    try:
        app(list(arguments), standalone_mode=False)
    except (UserError, Preempted) as error:
        if distributed.is_first_started():
            kind = "error" if isinstance(error, UserError) else "stopped"
            print(f"{kind}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or not distributed.is_started_by_torchrun():
        print("error: torchrun starts this, with the name and the options of a training stage", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
    sys.exit(_be_a_rank(sys.argv[1], sys.argv[2:]))
