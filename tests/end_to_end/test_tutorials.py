"""The commands of the tutorial, one after the other, on noise and with backbones that know nothing."""

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

TUTORIAL = REPOSITORY / "docs/tutorials/own-photographs.md"
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


def test_the_tutorial(tmp_path: Path, forks: Forks) -> None:
    study, backbones = tmp_path / "my-study", tmp_path / "backbones"
    for source in re.findall(r"source: ([\w.-]+/[\w.-]+)", TUTORIAL.read_text(encoding="utf-8")):
        (backbones / source).mkdir(parents=True, exist_ok=True)
        write_inputs(backbones / source)
        shutil.copytree(backbones / source / "vit", backbones / source, dirs_exist_ok=True)
    environment, printed = {**os.environ, "VITCAPR_BACKBONES": str(backbones)}, {}
    blocks = list(blocks_of(TUTORIAL))
    _, other, _ = (block.text for block in blocks if block.language == "yaml")
    for words in (words for block in blocks if block.language == "bash" for words in commands_of(block)):
        if words[0] in NOT_RUN or words[:2] == ["vitcapr", "serve"]:
            continue
        if words[:2] == ["vitcapr", "status"]:
            experiment = study / "experiments/template.yaml"
            experiment.write_text(experiment.read_text().replace("epochs: 12", "epochs: 20"))
        starts = words[:2] == ["vitcapr", "init"]
        done = forks.run("-m", *words, folder=tmp_path if starts else study, environment=environment)
        assert done.returncode == 0, (words, done.stdout + done.stderr)
        printed[" ".join(words)] = done.stdout + done.stderr
        if starts:
            write_data(study)
            (study / "experiments/backbones.yaml").write_text(other, encoding="utf-8")
    assert (study / "results/template/index.html").is_file()
    assert (study / "explained/new.jpg.attention.png").is_file()
    assert "epochs 12 -> 20" in printed["vitcapr status --configfile experiments/template.yaml"]
    assert "on-dinov2" in printed["vitcapr table results/backbones/summary.csv"]
