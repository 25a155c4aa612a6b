"""``training.processes``: the command starts torchrun, passes signals on, and ends as with one process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch.distributed.run import parse_args

from vitcapr.errors import UserError
from vitcapr.training.distributed import run_processes, torchrun_arguments


def start(output: Path, *command: str, epochs: int = 400) -> "subprocess.Popen[str]":
    """Start a training in two processes: by itself, or by the ``command`` of a launcher for ``python -m``.

    They ignore SIGINT, as what a shell starts in the background. By default it lasts longer than the two seconds after
    which a signal is passed on.
    """
    names = {"features": "features/vit/manifest.json", "manifest": "data/manifest.json", "tokens": "text/tokens.npz"}
    files = {key: f"results/toy/{name}" for key, name in {**names, "vocabulary": "text/vocabulary.json"}.items()}
    phases = [{"epochs": epochs, "batch_images": 3, "learning_rate": 0.01}]
    training = {"phases": phases, "precision": "float32", "processes": 2}
    settings = {"captioner": {"backbone": "vit", "embedding_dim": 4, "hidden_dim": 6, "training": training}}
    return subprocess.Popen(
        [
            *(sys.executable, "-m", *(command or ("vitcapr",)), "stage", "train_captioner"),
            *("--job", json.dumps({**files, "settings": settings, "device": "cpu", "captioner": str(output)})),
            *("--log", str(output.with_suffix(".log"))),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )


@pytest.mark.slow  # eight processes import torch: a minute of one core
def test_a_training_in_two_processes_is_stopped_and_continued(project: Path, tmp_path: Path) -> None:
    assert project == Path.cwd()
    output = tmp_path / "captioner"
    first = start(output)
    deadline = time.monotonic() + 180
    log_path = output.with_suffix(".log")
    log_path.touch()
    while "epoch 1: " not in log_path.read_text() and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    first.send_signal(signal.SIGUSR1)
    errors = first.communicate()[1]
    assert first.returncode == 75, errors
    assert "stopped: training saved at epoch" in errors
    assert not (output / "card.json").exists()
    second = start(output)
    while "continuing at epoch" not in log_path.read_text() and second.poll() is None:
        time.sleep(0.01)
    os.killpg(second.pid, signal.SIGINT)
    errors = second.communicate()[1]
    assert second.returncode == 0, errors
    log = log_path.read_text()
    assert log.count("continuing at epoch") == 1
    assert log.count("best epoch") == 1, "one process speaks"
    assert len((output / "history.csv").read_text().splitlines()) == 401
    assert json.loads((output / "card.json").read_text())["settings"]["captioner"]["training"]["processes"] == 2


@pytest.mark.slow  # seven processes import torch
@pytest.mark.usefixtures("project")
def test_two_machines_train_what_two_processes_of_one_do(tmp_path: Path) -> None:
    """Two agents of torchrun that meet at an address, as docs/slurm.md starts them with ``srun``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    meeting = ("--rdzv-id=1", "--rdzv-backend=c10d", f"--rdzv-endpoint={address}")
    agent = ("torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", *meeting, "-m", "--")
    process = (*agent, "vitcapr")
    machines = [start(tmp_path / "apart", *process, epochs=3) for _ in range(2)]
    errors = [machine.communicate()[1] for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], errors
    together = start(tmp_path / "together", epochs=3)
    assert together.communicate()[1]
    assert together.returncode == 0
    for name in ("best.safetensors", "history.csv"):
        assert (tmp_path / "apart" / name).read_bytes() == (tmp_path / "together" / name).read_bytes()


def test_torchrun_leaves_the_options_of_the_stage_alone() -> None:
    options = ["--job", "{}", "--log", "results/toy/logs/train.log", "-t", "--", "--max"]
    chosen = parse_args(torchrun_arguments("train_captioner", 3, options))
    assert (chosen.nproc_per_node, chosen.module, chosen.training_script) == ("3", True, "vitcapr")
    assert chosen.training_script_args == ["stage", "train_captioner", *options]


def test_processes_do_not_share_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(UserError, match=r"4 processes cannot share 1 GPU \(training.processes\); ask for as many GPUs"):
        run_processes("train_captioner", 4, "cuda", [])
