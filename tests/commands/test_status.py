"""How many images a status says are left to extract."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.commands.conftest import write_backbones
from vitcapr.commands.status import PlannedJob, extractions
from vitcapr.config.base import parse
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.experiment.experiment import Experiment
from vitcapr.files import sha256_file
from vitcapr.formats.manifest import write_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.extract import extract

JOBS = [PlannedJob("extract", "extract vit/0", ""), PlannedJob("seal", "seal vit", "")]


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    write_backbones(tmp_path)
    monkeypatch.chdir(tmp_path)
    values = {
        "experiment": "a",
        "backbones": {"vit": {"source": "noise-vit", "dtype": "float32"}},
        "features": {"device": "cpu"},
    }
    return Experiment(parse(ExperimentConfig, values, "test"))


def write_pictures(count: int) -> None:
    generator = np.random.default_rng(0)
    rows = []
    for number in range(count):
        path = Path(f"{number}.png")
        Image.fromarray(generator.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(path)
        rows.append((str(number), path.name, "train", 16, 16, sha256_file(path)))
    images = pd.DataFrame(rows, columns=["image_id", "path", "split", "width", "height", "sha256"])
    captions = images[["image_id", "split"]].assign(caption_id=images["image_id"], language="en", text="noise")
    folder = Path("results/a/data")
    write_manifest(folder, dataset="noise", image_root=Path(), images=images, captions=captions, rejected=[])


def test_pictures_that_a_store_holds_are_not_counted(experiment: Experiment) -> None:
    write_pictures(5)
    assert extractions(experiment, JOBS) == ["vit: 5 of 5 images to extract"]
    settings = {"backbone": experiment.config.backbones["vit"].model_dump(), "features": {"device": "cpu"}}
    run_stage(
        extract,
        manifest=Path("results/a/data/manifest.json"),
        stores=Path("results/stores"),
        part=Path("results/a/features/vit/parts/0.json"),
        settings=json.dumps(settings),
    )
    write_pictures(7)
    assert extractions(experiment, JOBS) == ["vit: 2 of 7 images to extract"]


def test_nothing_is_counted_before_the_data_stage(experiment: Experiment) -> None:
    assert extractions(experiment, [PlannedJob("data", "data", ""), *JOBS]) == []


def test_without_an_extraction_torch_is_not_loaded(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vitcapr.encoders.precision", None)
    assert extractions(experiment, JOBS[1:]) == []
    with pytest.raises(ImportError):
        extractions(experiment, JOBS)
