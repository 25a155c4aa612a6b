"""The notebooks in docs/ run, cell by cell, on a very small experiment."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import vitcapr
from vitcapr.formats.scores import read_summary

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
NEW_HEAD = """
experiment, backbone, encoder = "toy", "vit", "bert"
name, dimension, epochs = "linear", 4, 2
"""
FROM_PHOTOGRAPHS = """
photographs, captions, backbone = "photos", "captions.csv", "noise-vit"
settings, least = {"embedding_dim": 4, "training": {"phases": {"epochs": 2}}}, 1
"""
OWN_LOOP = """
images, texts, data = "results/toy/features/vit", "results/toy/text_features/bert", "results/toy/data"
width, batch_images, epochs = 4, 4, 2
"""
USE_MODELS = """
experiment, captioner_name, retriever_name = "toy", "patch_attention", "words"
query = "a big dog"
"""


def executed(name: str, with_parameters: str) -> dict[str, Any]:
    """The variables that a notebook leaves."""
    cells = [cell for cell in json.loads((NOTEBOOKS / name).read_text())["cells"] if cell["cell_type"] == "code"]
    namespace: dict[str, Any] = {}
    replaced = 0
    for cell in cells:
        if "lightning" in cell["metadata"].get("tags", []) and find_spec("lightning") is None:
            continue
        parameters = "parameters" in cell["metadata"].get("tags", [])
        replaced += parameters
        exec(with_parameters if parameters else "".join(cell["source"]), namespace)
    assert replaced == 1
    return namespace


def test_new_head_runs_and_its_scores_are_in_the_summary(project: Path) -> None:
    namespace = executed("new_head.ipynb", NEW_HEAD)
    rows = read_summary(project / "results" / "summary.csv")
    mine = rows[(rows["experiment"] == "toy-notebook") & (rows["model"] == "linear")]
    assert {"i2t_recall_1", "t2i_recall_10"} <= set(mine["metric"])
    assert len(namespace["embedded"]["images"]) == len(namespace["pool"]) == 3


@pytest.mark.usefixtures("project")
def test_own_loop_trains_in_three_ways() -> None:
    namespace = executed("own_loop.ipynb", OWN_LOOP)
    assert namespace["position"] == {"epoch": 2, "batch": 0}
    assert "t2i_recall_1" in set(namespace["recall"].scores["metric"])
    assert namespace["trained"].global_step == 4
    assert "lit" not in namespace or namespace["lit"].current_epoch == 2


def test_from_photographs_reaches_recall_and_captions(project: Path) -> None:
    splits = ["train", "train", "validation", "test"]
    rows = [f"photo {number:02d}.png,A {('dog', 'cat')[number % 3 % 2]}.,{splits[number % 4]}" for number in range(12)]
    (project / "captions.csv").write_text("\n".join(["image,caption,split", *rows]))
    namespace = executed("from_photographs.ipynb", FROM_PHOTOGRAPHS)
    assert "rsum" in set(namespace["recall"].scores["metric"])
    study = project / "study"
    assert vitcapr.load_captioner(study).folder == study / "captioners/attention"
    assert len(vitcapr.load_retriever(study).search("a dog", k=3)) == 3


@pytest.mark.usefixtures("project")
def test_use_models_runs(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = executed("use_models.ipynb", USE_MODELS)
    assert len(namespace["captioned"]) == 3
    assert len(namespace["found"]) == 5
    assert namespace["of_image"].shape == (1, 5)
    assert capsys.readouterr() == ("", "")
