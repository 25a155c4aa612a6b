"""What depends on the machine: where backbones and stores are, and which Python the rules run."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

RESULTS = Path("results")
"""The folder of all results."""


def find_backbone(source: str) -> Path:
    """Where a model's folder would be: under VITCAPR_BACKBONES, else where ``source`` says; a hub id is nowhere."""
    root = os.environ.get("VITCAPR_BACKBONES")
    return Path(root) / source if root and (Path(root) / source).exists() else Path(source)


def results_of(workflow: Any) -> Path:
    """The folder of all results of a Snakemake workflow: below its prefix, where another uses it as a module."""
    prefix = workflow.modifier.path_modifier.prefix
    return Path(prefix or "") / RESULTS


def stores_root(results: Path = RESULTS) -> Path:
    """The folder of all feature stores: VITCAPR_STORES, which a group may share, else ``results/stores``."""
    shared = os.environ.get("VITCAPR_STORES")
    return Path(shared).expanduser() if shared else results / "stores"


def find_store(name: str, results: Path = RESULTS) -> Path:
    """The sealed manifest of the store that is ``name`` among all stores, or else lies where its path says."""
    place = stores_root(results) / name
    folder = place if place.exists() else Path(name).expanduser()
    return folder if folder.suffix == ".json" else folder / "manifest.json"


def use_this_python() -> None:
    """Make ``python`` in the rules the one that runs Snakemake, whether or not its environment is activated.

    A conda environment of a rule is activated after this and goes first.
    """
    folder = str(Path(sys.executable).parent)
    search = os.environ.get("PATH", "").split(os.pathsep)
    if search[:1] != [folder]:
        os.environ["PATH"] = os.pathsep.join([folder, *search])


def leave_sigusr1_to_the_stages() -> None:
    """Make Snakemake, and what it starts, ignore SIGUSR1; a stage that saves its state sets a handler of its own.

    Slurm sends it to all of a job's processes to say that its time is nearly up (``--signal=USR1@SECONDS``), and
    Snakemake, which knows nothing of it, would die and take the stage with it in the middle of saving.
    """
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
