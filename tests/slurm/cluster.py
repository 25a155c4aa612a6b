"""A Slurm of one node with four make-believe GPUs, for as long as a test lasts: Debian's packages, no systemd."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

SETTINGS = Path("/etc/slurm")  # it must be this one: the executor clears the variable that would name another
OURS = "# Made by vitcapr's tests (make test-slurm), which take it away again.\n"
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "scontrol", "squeue", "scancel")

CONTROLLER = """\
ClusterName=localtest
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation={scratch}/state
SlurmdSpoolDir={scratch}/spool
SlurmctldPidFile={scratch}/slurmctld.pid
SlurmdPidFile={scratch}/slurmd.pid
SlurmctldLogFile={scratch}/slurmctld.log
SlurmdLogFile={scratch}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
MinJobAge=7200
KillWait=300
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName={host} NodeAddr=127.0.0.1 CPUs=64 Sockets=1 CoresPerSocket=64 ThreadsPerCore=1 RealMemory=60000 Gres=gpu:l40s:4
PartitionName=cpu Nodes={host} Default=YES MaxTime=1-0 State=UP PreemptMode=OFF
PartitionName=gpu-l40s Nodes={host} MaxTime=1-0 State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=300
PartitionName=urgent Nodes={host} MaxTime=1-0 State=UP PriorityTier=2 PreemptMode=OFF
"""
GPUS = "".join(
    f"NodeName={{host}} Name=gpu Type=l40s File=/dev/{name}\n" for name in ("null", "zero", "full", "random")
)


def why_not() -> str | None:
    """Why no Slurm can be started here, in a line; None if one can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} not found: as root, make test-slurm installs slurm-wlm and munge"
    if os.geteuid() != 0:
        return "only root can start a Slurm: sudo make test-slurm"
    there = SETTINGS / "slurm.conf"
    if there.exists() and not there.read_text().startswith(OURS):
        return f"{there} is of another Slurm, which is left alone"
    return None


@contextmanager
def slurm(scratch: Path) -> Iterator[None]:
    """Inside, Slurm runs, with its state and logs in ``scratch``; afterwards its daemons and settings are gone."""
    names = {"host": socket.gethostname().partition(".")[0], "scratch": scratch}
    for folder in (scratch / "state", scratch / "spool", SETTINGS):
        folder.mkdir(parents=True, exist_ok=True)
    (SETTINGS / "slurm.conf").write_text(OURS + CONTROLLER.format(**names))
    (SETTINGS / "gres.conf").write_text(OURS + GPUS.format(**names))
    pids = [scratch / "slurmd.pid", scratch / "slurmctld.pid"]
    try:
        if subprocess.run(["munge", "-n"], capture_output=True, check=False).returncode:
            Path("/run/munge").mkdir(exist_ok=True)
            shutil.chown("/run/munge", "munge", "munge")
            subprocess.run(["runuser", "-u", "munge", "--", "munged", "--force"], check=True)
            pids.append(Path("/run/munge/munged.pid"))
        subprocess.run(["slurmctld", "-c"], check=True)
        subprocess.run(["slurmd", "-N", names["host"]], check=True)
        assert _becomes("idle", "sinfo", "-h", "-o", "%t"), (scratch / "slurmctld.log").read_text()[-3000:]
        yield
    finally:
        # No job is left behind when the daemons end.
        subprocess.run(["scancel", "--user=root"], check=False, capture_output=True)
        _becomes("", "squeue", "--noheader")
        for file in pids:
            if file.exists():
                _end(int(file.read_text()))
        for name in ("slurm.conf", "gres.conf"):
            (SETTINGS / name).unlink(missing_ok=True)


def ask(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _becomes(answer: str, *command: str) -> bool:
    """Whether the words that a command prints are no others than ``answer``, within a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        if set(printed.split()) == set(answer.split()):
            return True
        time.sleep(0.5)
    return False


def _end(pid: int) -> None:
    """Ask a daemon to end and wait until it has."""
    with suppress(psutil.NoSuchProcess):
        daemon = psutil.Process(pid)
        daemon.terminate()
        try:
            daemon.wait(30)
        except psutil.TimeoutExpired:
            daemon.kill()
