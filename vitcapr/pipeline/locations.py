"""Places on this machine: the workflow, the results, the feature stores, and the Python of the rules."""

import os
import sys
from pathlib import Path

RESULTS = Path("results")
"""The folder of all results."""
_PACKAGE = Path(__file__).parents[1]
WORKFLOW = _PACKAGE / "project" if (_PACKAGE / "project").is_dir() else _PACKAGE.parent
"""The folder with the Snakefile, the rules, ``config.yaml``, the profiles and the experiments: in the installed
package, or the checkout."""
SNAKEFILE = str(WORKFLOW / "Snakefile")


_GPUS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Devices of NVIDIA's driver, of AMD's, and of both under Windows."""


def gpu_exists() -> bool:
    """Whether this machine has the driver of a GPU. It does not import torch."""
    return any(Path(device).exists() for device in _GPUS)


def conda_environment(name: str) -> str:
    """Return the path of ``envs/NAME.yaml``: Snakemake would look for a relative path beside the rules that use it."""
    return str(WORKFLOW / "envs" / f"{name}.yaml")


def can_only_be_a_folder(source: str) -> bool:
    """Return whether the source of a model is no hub id, which is a name or two with a slash between."""
    return Path(source).is_absolute() or source.startswith((".", "~")) or source.count("/") > 1


def stores_root(results: Path = RESULTS) -> Path:
    """Return the folder of all feature stores: VITCAPR_STORES (a group can share it), else ``results/stores``."""
    shared = os.environ.get("VITCAPR_STORES")
    return Path(shared).expanduser() if shared else results / "stores"


def find_store(name: str, results: Path = RESULTS) -> Path:
    """Return the sealed manifest of a store: in the folder of all stores if it exists there, else at this path."""
    place = stores_root(results) / name
    folder = place if place.exists() else Path(name).expanduser()
    return folder if folder.suffix == ".json" else folder / "manifest.json"


def extend_path() -> None:
    """Make the rules use the Python that runs Snakemake, even if its environment is not activated, and our sbatch.

    A rule's conda environment is activated later and takes precedence.
    """
    first = [str(Path(sys.executable).parent), str(WORKFLOW / "profiles/slurm/bin")]
    os.environ["PATH"] = os.pathsep.join([*first, os.environ.get("PATH", "")])
