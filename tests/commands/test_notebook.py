"""The notebook in docs/ runs, cell by cell, on a very small experiment."""

import json
from pathlib import Path
from typing import Any

import nbformat

from vitcapr.artefacts.summary import read_summary

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "new_head.ipynb"
PARAMETERS = """
experiment, backbone, encoder = "toy", "vit", "bert"
name, dimension, epochs = "linear", 4, 2
"""


def test_the_notebook_runs_and_its_scores_are_in_the_summary(project: Path) -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    namespace: dict[str, Any] = {}
    replaced = 0
    for cell in cells:
        parameters = "parameters" in cell["metadata"].get("tags", [])
        replaced += parameters
        exec(PARAMETERS if parameters else "".join(cell["source"]), namespace)
    assert replaced == 1
    rows = read_summary(project / "results" / "summary.csv")
    mine = rows[(rows["experiment"] == "toy-notebook") & (rows["model"] == "linear")]
    assert {"i2t_recall_1", "t2i_recall_10"} <= set(mine["metric"])
    assert len(namespace["embedded"]["images"]) == len(namespace["pool"]) == 3


def test_the_notebook_is_sound_and_carries_no_output() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    head = next(cell for cell in notebook.cells if "optimizer.step()" in cell.source)
    assert len(head.source.splitlines()) <= 20
