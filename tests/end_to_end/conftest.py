"""Toy runs of the three systems, shared by the tests that look at what they left."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.inputs import write_inputs

REPOSITORY = Path(__file__).parents[2]
TOYS = Path(__file__).parent / "toys"

Snakemake = Callable[..., subprocess.CompletedProcess[str]]


def copy_checkout(folder: Path) -> None:
    """What Snakemake reads of the repository; the stages are those that are installed."""
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(REPOSITORY / name, folder)
    for name in ("rules", "workflow", "profiles", "envs", "experiments"):
        shutil.copytree(REPOSITORY / name, folder / name)
    (folder / "slurm").symlink_to("profiles/slurm")


@pytest.fixture(scope="session")
def snakemake() -> Snakemake:
    """Run snakemake on a toy experiment in a folder; what it printed is in ``stdout``."""

    def run(folder: Path, *arguments: str, experiment: str = "tiny") -> subprocess.CompletedProcess[str]:
        # The models are tiny: two jobs with a thread each are done sooner than one by one with two.
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--max-threads", "1"]
        return subprocess.run(
            [*command, "--configfile", f"{experiment}.yaml", *arguments],
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A checkout with all results of the captioning toy, ``tiny``."""
    folder = tmp_path_factory.mktemp("project")
    copy_checkout(folder)
    shutil.copytree(TOYS, folder, dirs_exist_ok=True)
    write_inputs(folder)
    done = snakemake(folder)
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture(scope="session")
def toys(project: Path, snakemake: Snakemake) -> Path:
    """The same checkout, with the results of the other toys as well."""
    for experiment in ("towers", "pairs"):
        done = snakemake(project, experiment=experiment)
        assert done.returncode == 0, done.stdout
    return project
