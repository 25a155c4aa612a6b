"""What depends on the machine: where the user's files are, and which Python the rules run."""

import os
import sys
from pathlib import Path


def find_data(name: str) -> Path:
    """Where a data file or folder of the configuration is: under VITCAPR_DATA, else where its path says."""
    return _find(name, "VITCAPR_DATA")


def find_backbone(source: str) -> Path:
    """Where a model's folder would be: under VITCAPR_BACKBONES, else where ``source`` says; a hub id is nowhere."""
    return _find(source, "VITCAPR_BACKBONES")


def use_this_python() -> None:
    """Make ``python`` in the rules the one that runs Snakemake, whether or not its environment is activated.

    A conda environment of a rule is activated after this and goes first.
    """
    folder = str(Path(sys.executable).parent)
    search = os.environ.get("PATH", "").split(os.pathsep)
    if search[:1] != [folder]:
        os.environ["PATH"] = os.pathsep.join([folder, *search])


def _find(name: str, variable: str) -> Path:
    shelf = os.environ.get(variable)
    if shelf and (Path(shelf) / name).exists():
        return Path(shelf) / name
    return Path(name)
