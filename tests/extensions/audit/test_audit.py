"""The audit of a small data set, as a command and as a stage."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.commands.stores import write_store
from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.extensions.audit.commands.pairs import app
from vitcapr.extensions.audit.stages.audit_data import audit_data
from vitcapr.formats.caption_audit import AUDIT
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.run import run_stage

NAMES = [f"i{number:03}.png" for number in range(120)]
SPLITS = ["train"] * 80 + ["test"] * 40
SWAPPED = [20, 101]
"""Captions that are exchanged."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two captions an image; image 90 is image 3 again, and the caption 5 stands in both splits."""
    root = tmp_path_factory.mktemp("data_set")
    for number, name in enumerate(NAMES):
        (root / "data").mkdir(exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(root / "data" / name)
    texts = [f"the words {number} of <b>" for number in range(240)]
    texts[200] = texts[5].upper()
    captions = [(name, "en", texts[2 * row + each]) for row, name in enumerate(NAMES) for each in range(2)]
    write_data_set(root / "data", dict(zip(NAMES, SPLITS, strict=True)), captions)
    draw = np.random.default_rng(0)
    cls = draw.normal(size=(120, 6))
    vectors = np.repeat(cls, 2, axis=0) @ draw.normal(size=(6, 8)) + 0.2 * draw.normal(size=(240, 8))
    vectors[SWAPPED] = vectors[SWAPPED[::-1]]
    cls[90] = cls[3]
    ids = [f"{name}#{number}" for name in NAMES for number in range(2)]
    write_store(root / "images", {"cls": cls.astype(np.float32)}, NAMES)
    write_store(root / "texts", {"text": vectors.astype(np.float32)}, ids, "caption_id", max_length=64)
    return root


def test_the_command_writes_what_the_stage_writes(data: Path, tmp_path: Path, capsys) -> None:
    stores = data / "images/sealed/manifest.json", data / "texts/sealed/manifest.json"
    command = tmp_path / "command"
    app(["audit", *map(str, stores), "--data", str(data / "data"), "-o", str(command)], standalone_mode=False)
    assert "wrong, estimated" in capsys.readouterr().out

    table = pd.read_parquet(command / "audit.parquet")
    assert table.columns.tolist() == AUDIT.names
    assert table["caption_id"].tolist() == [f"{name}#{number}" for name in NAMES for number in range(2)]
    assert set(table.nsmallest(4, "rank").index) > set(SWAPPED)
    assert sorted(table["rank"]) == [*range(1, 241)]
    assert table["suspicion"][table["rank"].argsort()].is_monotonic_decreasing
    assert table["odd"][200] == "in the training split word for word"
    swapped = table.loc[SWAPPED]
    assert (swapped["better_image"] != "").all()
    assert (swapped["better_image"] != swapped["image_id"]).all()

    leaks = pd.read_csv(command / "leaks.csv")
    assert leaks.iloc[0].tolist() == ["one image under two ids", NAMES[3], NAMES[90], 1.0, "train", "test"]
    assert "one image under two ids" not in leaks["leak"][1:].tolist()
    page = (command / "index.html").read_text()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("data:image/jpeg") > 100

    names = {"captions": "audit.parquet", "leaks": "leaks.csv", "table": "tables.md", "pictures": "index.html"}
    files = {name: tmp_path / "stage" / file for name, file in names.items()}
    run_stage(
        audit_data,
        log=tmp_path / "log.txt",
        features=stores[0],
        text_features=stores[1],
        manifest=data / "data/manifest.json",
        name="whole",
        page=tmp_path / "stage" / "page_section.json",
        **files,
    )
    for file in names.values():
        assert (tmp_path / "stage" / file).read_bytes() == (command / file).read_bytes()


def test_planted_swaps_are_measured(data: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["audit", *map(str, arguments)])
        runpy.run_module("benchmarks.audit", run_name="__main__")

    run("planted", data / "images/sealed", data / "texts/sealed", data / "data", 1)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["captions"] for row in rows] == [160] * 3 + [80] * 3
    assert min(row["auc"] for row in rows) > 0.9
    run("swap", data / "data", 0.2, 1, tmp_path / "captions.csv")
    texts = read_manifest(data / "data").captions["text"].to_numpy()
    changed = pd.read_csv(tmp_path / "captions.csv")["caption"].to_numpy() != texts
    assert (changed.sum(), changed[160:].sum()) == (32, 0)


def test_stores_of_another_data_set_are_refused(data: Path, tmp_path: Path) -> None:
    write_data_set(tmp_path / "other", {"x.png": "train"}, [("x.png", "en", "a word")])
    arguments = [str(data / "images/sealed"), str(data / "texts/sealed"), "--data", str(tmp_path / "other")]
    with pytest.raises(UserError, match="the features are not those of the images"):
        app(["audit", *arguments, "-o", str(tmp_path / "out")], standalone_mode=False)
