"""Toy runs of the three systems, shared by the tests that look at what they left."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checkouts import copy_checkout
from tests.docs.blocks import REPOSITORY, blocks_of
from tests.end_to_end.inputs import write_inputs
from tests.forks import OPENED, Forks
from tests.torture.runs import package_forks

TOYS = Path(__file__).parent / "toys"

Snakemake = Callable[..., subprocess.CompletedProcess[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, default=40, help="Of the campaign (marker torture).")
    parser.addoption("--seed", type=int, default=0, help="Of the campaign (marker torture).")


@pytest.fixture(scope="session")
def forks() -> Forks:
    return package_forks()


@pytest.fixture(scope="session")
def snakemake(forks: Forks) -> Snakemake:
    """Run snakemake on a toy experiment in a folder; what it and its jobs printed is in ``stdout``."""

    def run(folder: Path, *arguments: str, experiment: str = "tiny") -> subprocess.CompletedProcess[str]:
        # The models are tiny: two jobs with a thread each are done sooner than one by one with two, and the search for
        # the best order costs more than it gains.
        options = ("--cores", "2", "--max-threads", "1", "--scheduler", "greedy", "--configfile", f"{experiment}.yaml")
        opened = folder / "opened"
        opened.mkdir(exist_ok=True)
        environment = {**os.environ, OPENED: str(opened)}
        done = forks.run("-m", "snakemake", *options, *arguments, folder=folder, environment=environment)
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout + done.stderr, "")

    return run


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A checkout with all results of the captioning toy, ``tiny``."""
    folder = tmp_path_factory.mktemp("project")
    copy_checkout(folder, "experiments")
    shutil.copytree(TOYS, folder, dirs_exist_ok=True)
    write_inputs(folder)
    done = snakemake(folder)
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture(scope="session")
def toys(project: Path, forks: Forks, snakemake: Snakemake) -> Path:
    """The same checkout, with the results of the other toys as well."""
    for experiment in ("towers", "pairs"):
        done = snakemake(project, experiment=experiment)
        assert done.returncode == 0, done.stdout
    move_stores(project, forks, snakemake)
    return project


def move_stores(project: Path, forks: Forks, snakemake: Snakemake) -> None:
    """Run the first commands of docs/moving-stores.md: audit, push, pull, adopt and train, in the toys' folders."""
    block = next(block for block in blocks_of(REPOSITORY / "docs" / "moving-stores.md") if block.language == "bash")
    places = {
        "--data results/made/data": "--data results/tiny/data --backbone results/tiny/backbones/trained",
        "results/made/features/vit": "results/tiny/features/vit",
        "results/made/text_features/sentences": "results/towers/text_features/bert",
        "s3://group": str(project / "group"),
    }
    text = block.text
    for shown, here in places.items():
        text = text.replace(shown, here)
    *commands, last = [line for line in text.splitlines() if not line.startswith("#")]
    for command in commands:
        done = forks.run("-m", *shlex.split(command), folder=project)
        assert done.returncode == 0, command + done.stdout + done.stderr
    assert last == "snakemake --cores 2 --configfile heads.yaml"
    done = snakemake(project, experiment="heads")
    assert done.returncode == 0, done.stdout
