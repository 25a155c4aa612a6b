"""The commands of the first two tutorials, one after the other, on noise and with backbones that know nothing."""

import csv
import itertools
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.data_sets import write_noise
from tests.docs.blocks import REPOSITORY, blocks_of, commands_of
from tests.end_to_end.inputs import write_inputs
from tests.forks import Forks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TUTORIALS = REPOSITORY / "docs" / "tutorials"
PHOTOGRAPHS = 60
NOT_RUN = {"cd": "the folder is given", "head": "of the system"}


def write_data(study: Path) -> None:
    names = [f"{number:04d}.png" for number in range(PHOTOGRAPHS)]
    write_noise(study / "photographs", names)
    with (study / "captions.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", "caption"])
        for name, thing in zip(names, itertools.cycle(["dog", "cat", "boat"])):
            table.writerows([[name, f"A {thing} on the left."], [name, f"There is a big {thing}."]])
    shutil.copy(study / "photographs" / "0000.png", study / "new.jpg")


def test_the_tutorials(tmp_path: Path, forks: Forks) -> None:
    study, backbones = tmp_path / "my-study", tmp_path / "backbones"
    for page in ("own-photographs.md", "new-backbone.md"):
        for source in re.findall(r"source: ([\w.-]+/[\w.-]+)", (TUTORIALS / page).read_text(encoding="utf-8")):
            (backbones / source).mkdir(parents=True, exist_ok=True)
            write_inputs(backbones / source)
            shutil.copytree(backbones / source / "vit", backbones / source, dirs_exist_ok=True)
    printed: dict[str, str] = {}

    def run(arguments: list[str], folder: Path) -> None:
        environment = {**os.environ, "VITCAPR_BACKBONES": str(backbones)}
        done = forks.run("-m", *arguments, folder=folder, environment=environment)
        assert done.returncode == 0, (arguments, done.stdout + done.stderr)
        printed[" ".join(arguments)] = done.stdout + done.stderr

    def follow(page: str) -> None:
        for block in blocks_of(TUTORIALS / page):
            for words in commands_of(block) if block.language == "bash" else []:
                if words[0] in NOT_RUN or words[:2] == ["vitcapr", "serve"]:
                    continue
                if words[:2] == ["vitcapr", "init"]:
                    run(words, tmp_path)
                    write_data(study)
                    continue
                if words[:2] == ["vitcapr", "status"]:
                    experiment = study / "experiments" / "template.yaml"
                    experiment.write_text(experiment.read_text().replace("epochs: 12", "epochs: 20"))
                run(words, study)

    follow("own-photographs.md")
    assert (study / "results/template/index.html").is_file()
    assert (study / "new.jpg.attention.png").is_file()
    assert "epochs 12 -> 20" in printed["vitcapr status --configfile experiments/template.yaml"]
    shown = next(block for block in blocks_of(TUTORIALS / "new-backbone.md") if block.language == "yaml")
    (study / "experiments" / "backbones.yaml").write_text(shown.text, encoding="utf-8")
    follow("new-backbone.md")
    assert "on-dinov2" in printed["vitcapr table results/backbones/summary.csv"]
