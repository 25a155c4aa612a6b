"""Settings of the machine: the folders of backbones and stores, and the Python of the rules."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

RESULTS = Path("results")
"""The folder of all results."""


def can_only_be_a_folder(source: str) -> bool:
    """Whether the source of a model is no hub id, which is a name or two with a slash between."""
    return Path(source).is_absolute() or source.startswith((".", "~")) or source.count("/") > 1


def results_folder(workflow: Any) -> Path:
    """The folder of all results of a Snakemake workflow. In a module it is below the module's prefix."""
    prefix = workflow.modifier.path_modifier.prefix
    return Path(prefix or "") / RESULTS


def stores_root(results: Path = RESULTS) -> Path:
    """The folder of all feature stores: VITCAPR_STORES (a group can share it), else ``results/stores``."""
    shared = os.environ.get("VITCAPR_STORES")
    return Path(shared).expanduser() if shared else results / "stores"


def find_store(name: str, results: Path = RESULTS) -> Path:
    """The sealed manifest of the store ``name``: in the folder of all stores if it exists there, else at this path."""
    place = stores_root(results) / name
    folder = place if place.exists() else Path(name).expanduser()
    return folder if folder.suffix == ".json" else folder / "manifest.json"


def use_this_python() -> None:
    """Make the rules use the Python that runs Snakemake, even if its environment is not activated.

    A rule's conda environment is activated later and takes precedence.
    """
    folder = str(Path(sys.executable).parent)
    search = os.environ.get("PATH", "").split(os.pathsep)
    if search[:1] != [folder]:
        os.environ["PATH"] = os.pathsep.join([folder, *search])


def leave_sigusr1_to_the_stages() -> None:
    """Make Snakemake and its child processes ignore SIGUSR1. Stages that save their state set their own handler.

    Slurm sends this signal to all processes of a job shortly before its time limit (``--signal=USR1@SECONDS``). Without
    this call, Snakemake would exit and stop the stage while it saves its state.
    """
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
