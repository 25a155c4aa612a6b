"""Every command of the README and of the pages that go on from it is run, here on the small experiment in place of the
demo."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.docs.blocks import REPOSITORY, blocks_of
from tests.forks import Forks

pytestmark = pytest.mark.timeout(1800)

PAGES = ("README.md", "docs/demo.md", "docs/evaluate.md", "docs/python-api.md")
README, DEMO, EVALUATE, PYTHON_API = (REPOSITORY / page for page in PAGES)


def blocks(language: str, page: Path = README) -> list[str]:
    return [block.text for block in blocks_of(page) if block.language == language]


COMMANDS = [line for page in (README, DEMO, EVALUATE) for block in blocks("bash", page) for line in block.splitlines()]
COMMANDS = list(dict.fromkeys(COMMANDS))
YOURS = [command for command in COMMANDS if "experiments/template.yaml" in command]
NEEDS_DATA = [command for command in COMMANDS if "experiments/" in command and command not in YOURS]
MAKE = [command for command in COMMANDS if command.startswith("make ")]
HERE = [command for command in COMMANDS if command not in [*NEEDS_DATA, *YOURS, *MAKE]]


Run = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def run(project: Path, forks: Forks) -> Run:
    """Run a command in the folder of the toy."""

    def run(command: str) -> subprocess.CompletedProcess[str]:
        done = forks.run("-m", *shlex.split(command), folder=project)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def own_files(project: Path) -> None:
    """The files of a user's own system that `vitcapr evaluate` is shown on."""
    references = [{"image_id": image, "caption": f"a dog with ball {image}"} for image in range(4)]
    (project / "captions_val2017.json").write_text(json.dumps({"annotations": references * 2}))
    for name, caption in (("results", "a dog with a ball"), ("other", "a cat")):
        entries = [{"image_id": image, "caption": caption} for image in range(4)]
        (project / f"{name}.json").write_text(json.dumps(entries))
    images = np.random.default_rng(0).normal(size=(12, 4))
    for of_images, of_texts in (("images", "texts"), ("others", "other_texts")):
        np.save(project / f"{of_images}.npy", images)
        np.save(project / f"{of_texts}.npy", np.repeat(images, 5, axis=0))


def small(command: str) -> str:
    """The same command for the small experiment; what needs a cluster is planned, not run."""
    if command.startswith("snakemake"):
        command += " --configfile tiny.yaml" + (" --dry-run" if "--profile" in command else "")
    elif command == "vitcapr status":
        command += " --configfile tiny.yaml"
    return command.replace("results/demo", "results/tiny")


def test_the_readme_has_the_commands() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 110
    assert MAKE == ["make demo"]
    assert len(HERE) >= 15
    assert NEEDS_DATA


@pytest.mark.usefixtures("own_files")
@pytest.mark.parametrize("command", HERE)
def test_command(run: Run, command: str) -> None:
    done = run(small(command))
    assert (done.stdout + done.stderr).strip()
    assert "METEOR" in done.stdout or not command.startswith("vitcapr evaluate results.json")


def test_the_python_example(project: Path, forks: Forks) -> None:
    source = "".join(blocks("python")).replace("results/demo", "results/tiny")
    check = "assert features['patches'][:64].shape[0] == 64 and features.attributes and len(features.image_ids) == 80"
    done = forks.run("-c", f"{source}\n{check}", folder=project)
    assert done.returncode == 0, done.stderr


def test_the_page_of_the_python_api(project: Path, forks: Forks) -> None:
    """Its Python in one process, which prints nothing. The small experiment has 80 images.

    A notebook runs the steps from photographs to recall.
    """
    source = "".join(block for block in blocks("python", PYTHON_API) if "data_photographs" not in block)
    source = source.replace("results/demo", "results/tiny")
    source = source.replace("evaluate(captions, references)", "evaluate(captions, references, metrics=['cider'])")
    done = forks.run("-c", source, folder=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


@pytest.mark.data
@pytest.mark.parametrize("command", NEEDS_DATA)
def test_command_on_real_data(run: Run, command: str) -> None:
    for variable in ("VITCAPR_DATA", "VITCAPR_BACKBONES"):
        if variable not in os.environ:
            pytest.skip(f"set {variable} to plan the run on real data")
    run(f"{command} --dry-run" if command.startswith("snakemake") else command)


def test_every_file_it_names_exists(project: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    missing = [link for link in links if not (REPOSITORY / link).exists()]
    written = DEMO.read_text(encoding="utf-8").split("## What it writes")[1]
    listed = re.findall(r"^\| `([^`]+)`(?:, `([^`]+)`)? \|", written, re.MULTILINE)
    made = [name for names in listed for name in names if name and "VITCAPR" not in name and "…" not in name]
    missing += [name for name in made if name != "report.html" and not (project / "results/tiny" / name).exists()]
    assert missing == []
