"""Training in several processes, each with its share of every batch: start, communication, stop.

On one machine a stage starts them itself, by torchrun, for ``training.processes`` above 1. On several machines,
``srun`` and ``torchrun`` start the stage on each: ``torchrun ... -m -- vitcapr stage train_captioner --job FILE``
(docs/slurm.md). Process rank 0 writes; all hold the same weights.

The gradients are those of the whole batch: each process weighs its mean loss by its share of the batch's items, and the
gradients are added up. torch's DistributedDataParallel is not used, because it follows a model's ``forward`` alone and
averages as if all shares were equal; a loss here calls parts of a model, and the last batch of an epoch may be split
unevenly.

The processes find one another through what torchrun sets in their environment. Without a group, every function here is
that of one process and changes nothing, so that a loss or a loop is written once.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn import functional as dist_functional

from vitcapr.encoders.devices import resolve_device
from vitcapr.errors import Preempted, UserError
from vitcapr.progress import is_started_by_torchrun

_ASKING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
"""Signals by which a scheduler or a user asks a training to stop."""
_SECONDS_BEFORE_PASSING_ON = 2.0
"""A scheduler sends a signal to all processes at once; torchrun takes a second one for an order to kill them."""


@contextmanager
def joined(device: torch.device) -> Iterator[None]:
    """Join the group of processes that torchrun started, while the block runs; without torchrun, do nothing.

    Args:
        device: where it trains; ``cuda`` becomes the GPU of the process's number on its machine.
    """
    if not is_started_by_torchrun():
        yield
        return
    options: dict[str, Any] = {}
    if device.type == "cuda":
        gpu = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(gpu)
        options["device_id"] = gpu
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", **options)
    try:
        yield
    finally:
        dist.destroy_process_group()


def rank() -> int:
    """Return this process's number in the group, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def processes() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def share() -> tuple[int, int]:
    """Return ``(rank, processes)``, which give this process its part of every batch."""
    return rank(), processes()


def is_first() -> bool:
    """Return whether this is process rank 0, which writes files and messages."""
    return rank() == 0


def broadcast_parameters(model: nn.Module) -> None:
    """Give all processes the weights of rank 0. Each process then draws its own random numbers."""
    if processes() == 1:
        return
    with torch.no_grad():
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, 0)
    torch.manual_seed(torch.initial_seed() + rank())


def all_reduce(*values: float) -> list[float]:
    """Return the sums of numbers over all processes."""
    if processes() == 1:
        return list(values)
    summed = torch.tensor(values, dtype=torch.float64, device=_device())
    dist.all_reduce(summed)
    return summed.tolist()


def share_of(items: int, device: torch.device) -> float | Tensor:
    """Return this process's share of the items of all processes.

    With several processes it is a number on ``device``, which is not read from there.
    """
    if processes() == 1:
        return 1.0
    counted = torch.full((), items, dtype=torch.float64, device=device)
    dist.all_reduce(counted)
    return (items / counted).float()


def any_of(flag: bool) -> bool:
    """Return whether the flag is set in any process."""
    return bool(all_reduce(float(flag))[0])


def broadcast(scores: dict[str, float]) -> dict[str, float]:
    """Return the numbers of process rank 0 in every process, so that all take the same decisions.

    Names and order must agree.
    """
    if processes() == 1:
        return scores
    values = torch.tensor(list(scores.values()), dtype=torch.float64, device=_device())
    dist.broadcast(values, 0)
    return dict(zip(scores, values.tolist(), strict=True))


def add_up_gradients(model: nn.Module) -> None:
    """Add up the gradients of all processes; a gradient that a process lacks counts as zero.

    A weight without a gradient in every process keeps none: with a gradient of 0, momentum would still move it.
    """
    if processes() == 1:
        return
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in trained]
    given = torch.tensor([float(each.grad is not None) for each in trained], device=gradients[0].device)
    flat = torch.cat([given, *(gradient.flatten() for gradient in gradients)])
    dist.all_reduce(flat)
    given, *parts = flat.split([len(trained), *(gradient.numel() for gradient in gradients)])
    for parameter, gradient, part, processes_with in zip(trained, gradients, parts, given.tolist(), strict=True):
        parameter.grad = gradient.copy_(part.view_as(gradient)) if processes_with else None


def zero_loss(model: nn.Module) -> Tensor:
    """Return the loss of an empty share: 0, with a gradient of 0 for the last weight.

    The first weight may be a temperature, which some losses do not use.
    """
    return 0.0 * [parameter for parameter in model.parameters() if parameter.requires_grad][-1].sum()


def gather(rows: Tensor) -> Tensor:
    """Return the rows of all processes, one after another in the order of their ranks: (n, ...) -> (N, ...).

    Gradients flow back to the process that a row came from, as the sum of what every process made of it: with losses
    weighed as the loop does, that is the gradient of the whole batch's loss.
    """
    if processes() == 1:
        return rows
    if rows.is_floating_point() and torch.is_grad_enabled() and not rows.requires_grad:
        # All processes take part in the backward pass: one with a frozen tower, because others have an empty share.
        rows = rows.detach().requires_grad_()
    counts = _counts(len(rows))
    missing = rows.new_zeros(max(counts) - len(rows), *rows.shape[1:])
    parts = dist_functional.all_gather(torch.cat([rows, missing]))
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])


def all_gather(tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """Tensors of the same names and shapes from every process, by rank, on the CPU."""
    if processes() == 1:
        return [dict(tensors)]
    gathered = {name: gather(tensor[None].to(_device())).cpu() for name, tensor in tensors.items()}
    return [{name: values[number] for name, values in gathered.items()} for number in range(processes())]


def rows_before(count: int) -> int:
    """Count the rows of the processes of lower rank, where this one has ``count``."""
    if processes() == 1:
        return 0
    return sum(_counts(count)[: rank()])


def _counts(count: int) -> list[int]:
    """Return the counts of all processes, by rank."""
    counts = torch.zeros(processes(), dtype=torch.int64, device=_device())
    counts[rank()] = count
    dist.all_reduce(counts)
    return counts.tolist()


def _device() -> torch.device:
    """Return the device of the group's own small tensors: NCCL sends only what is on a GPU."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


class StopRequest:
    """Set once a signal has come; looked at between two steps."""

    def __init__(self) -> None:
        self.name: str | None = None

    def __bool__(self) -> bool:
        return self.name is not None


@contextmanager
def stop_on_signal(*, patient: bool = False, then: Callable[[], None] = lambda: None) -> Iterator[StopRequest]:
    """Let SIGTERM, SIGUSR1 and SIGINT set a request instead of ending the process; an ignored SIGINT stays ignored.

    Later ones count as the first: Slurm sends SIGTERM to all processes of a job, and srun passes its own on. Only a
    second SIGINT, which is a user's, ends the process as usual.

    Args:
        patient: a second SIGINT does not end the process either. For one of several processes: torchrun passes on a
            signal that the terminal has sent to each of them already.
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
    """Return the arguments of torchrun.

    The stage's arguments follow ``--``, or torchrun would take ``--log`` for its own option.
    """
    return ["--standalone", f"--nproc-per-node={processes}", "-m", "--", "vitcapr", "stage", stage, *arguments]
