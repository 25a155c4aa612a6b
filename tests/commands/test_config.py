"""``vitcapr config``."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from tests.commands.stores import write_store
from vitcapr.commands.config import app
from vitcapr.commands.estimate import backbone_lines, missing_lines, splits_and_languages, text_encoder_lines
from vitcapr.commands.forecast import FIRST_RUN
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.errors import UserError
from vitcapr.experiment.checks import problems
from vitcapr.experiment.experiment import Experiment
from vitcapr.extensions.demo.stages.data_scenes import data_scenes
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.run import run_stage

REPOSITORY = Path(__file__).parents[2]
ELSEWHERE = {"vit": {"source": "nowhere"}}
CAPTIONER = {"captioners": {"mine": {"backbone": "vit"}}}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.delenv("VITCAPR_DATA", raising=False)
    monkeypatch.setattr("vitcapr.commands.forecast.read_recorded", lambda _: [])


def config(*arguments: str) -> str:
    """What ``vitcapr config`` prints."""
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


def write(path: Path, **values: object) -> str:
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return str(path)


def test_the_default_is_sound() -> None:
    assert config("check").splitlines() == [
        "data: scenes, 10,000 images: 9,000 train, 500 validation, 500 test",
        # An image has CLS and 8 x 8 patches of 128 numbers, of 2 bytes each.
        "backbone vit: trained here on the 10,000 images; 166.4 MB of features",
        "demo: 10,000 rendered images; backbones: 1, captioners: 1, retrievers: 3, sets of captions: 4",
        f"time and memory: {FIRST_RUN}",
        "config.yaml: no mistakes",
    ]


def test_images_and_bytes_of_features_are_counted(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for number in range(3):
        (tmp_path / "images" / f"{number}.png").touch()
    (tmp_path / "t.csv").write_text("image,caption,split\n0.png,a,train\n1.png,b,val\n2.png,,test\n9.png,d,test\n")
    (tmp_path / "vit").mkdir()
    shape = {"model_type": "vit", "hidden_size": 192, "patch_size": 16, "image_size": 224}
    (tmp_path / "vit" / "config.json").write_text(json.dumps(shape))
    (tmp_path / "vit" / "model.safetensors").touch()
    table = {"images": f"{tmp_path}/images", "captions": f"{tmp_path}/t.csv"}
    values: dict[str, Any] = {
        "experiment": "not_yet_run",
        "data": {"dataset": "table", "table": table},
        "backbones": {"small": {"source": f"{tmp_path}/vit"}},
        "captioners": {"mine": {"backbone": "small"}},
        "run": {"splits": ["validation"]},
    }
    file = write(tmp_path / "mine.yaml", **values)
    with pytest.raises(UserError, match=r"1 of 3 captioned images cannot be used, '9\.png' first: 1 x no such file"):
        config("check", "--configfile", file)
    file = write(tmp_path / "mine.yaml", **{**values, "data": {**values["data"], "max_rejected": 1}})
    left_out, data, backbone, contents, few, _, last = config("check", "--configfile", file).splitlines()
    assert left_out.startswith("left out before any picture is opened: 3 (")
    assert left_out.endswith("; at most 100 % may be missing or damaged (data.max_rejected)")
    assert data == "data: table, 2 images: 1 train, 1 validation"
    assert backbone == f"backbone small: {tmp_path}/vit; 151.3 kB of features"  # 2 x 197 x 192 x 2 bytes
    assert few.startswith("validation: One image tells nothing of a model")
    assert last == f"{file}: no mistakes"
    assert contents == "not_yet_run: data set table; backbones: 1, captioners: 1, retrievers: 0, sets of captions: 2"


def test_images_are_those_of_the_data_set_that_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of an earlier run with another data set or with other settings."""
    monkeypatch.chdir(tmp_path)
    scenes = {"images": 30, "size": 32}

    def sizes(**changes: object) -> dict[str, int]:
        values = {"experiment": "mine", "data": {"scenes": scenes, **changes}, "backbones": ELSEWHERE, **CAPTIONER}
        return dict(splits_and_languages(Experiment.from_config(values))[0])

    folder = Path("results/mine/data")
    settings = {"scenes": scenes}
    run_stage(data_scenes, log=Path("results/mine/logs/data.log"), settings=settings, folder=folder)
    assert sizes() == Counter(read_manifest(folder / "manifest.json").images["split"])
    assert sizes(scenes={**scenes, "images": 200}) == {"train": 180, "validation": 10, "test": 10}
    (tmp_path / "images").mkdir()
    for name in ("a.png", "b.png"):
        (tmp_path / "images" / name).touch()
    (tmp_path / "t.csv").write_text("image,caption,split\na.png,a,train\nb.png,b,val\n")
    table = {"images": "images", "captions": "t.csv"}
    assert sizes(dataset="table", table=table, scenes={}) == {"train": 1, "validation": 1}
    audit = pd.DataFrame({"caption_id": ["a.png#0"], "image_id": "a.png", "suspicion": 1.0, "wrong": 0.9})
    audit.to_parquet(tmp_path / "audit.parquet")
    assert sizes(dataset="table", table=table, scenes={}, leave_out="audit.parquet") == {"validation": 1}


def test_show_is_complete_and_reads_back_as_the_same() -> None:
    shown = yaml.safe_load(config("show"))
    assert ExperimentConfig.model_validate(shown).canonical() == shown


@pytest.mark.parametrize(
    ("file", "command"), [("config/README.md", "parameters"), ("workflow/schemas/config.schema.yaml", "schema")]
)
def test_the_committed_keys_and_their_schema_are_the_codes(file: str, command: str) -> None:
    """`make pages` writes them again."""
    assert (REPOSITORY / file).read_text(encoding="utf-8") == config(command)


def test_what_is_known_of_stores_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITCAPR_STORES", str(tmp_path / "stores"))
    images = {"cls": np.zeros((3, 6), np.float16), "patches": np.zeros((3, 4, 6), np.float16)}
    for identity, name, arrays, made in (
        ("image_id", "c" * 16, images, {"grid": [2, 2], "backbone": "mine"}),
        ("caption_id", "e" * 16, {"text": np.zeros((3, 8), np.float16)}, {"backbone": "bert"}),
    ):
        write_store(tmp_path, arrays, list("abc"), identity, sealed=f"stores/{name}/manifest.json", **made)
    values = {
        "experiment": "mine",
        "backbones": {"vit": {"source": f"store:{'c' * 16}"}},
        "text_encoders": {"bert": {"source": f"store:{'e' * 16}"}, "gone": {"source": "store:gone"}},
        "captioners": {"attention": {"backbone": "vit"}},
        "retrievers": {
            name: {"backbone": "vit", "text": {"kind": "features", "encoder": name}} for name in ("bert", "gone")
        },
        "rerankings": {"reranked": {"decoding": "beam", "retriever": "gone"}},
    }
    experiment = Experiment(ExperimentConfig.model_validate(values))
    assert [*backbone_lines(experiment, 3), *text_encoder_lines(experiment)] == [
        "backbone vit: the feature store store:cccccccccccccccc: 3 images, cls 6, patches 4 x 6, grid 2 x 2; "
        "imported as mine",
        "text encoder bert: the feature store store:eeeeeeeeeeeeeeee: 3 captions, text 8; imported as bert",
        "text encoder gone: the feature store store:gone is not there (gone/manifest.json)",
    ]
    assert missing_lines(experiment) == []
    for source, place in (("org/vit", "of the hub, or in its cache"), ("/nowhere/vit", "is not there")):
        other = Experiment(ExperimentConfig.model_validate({**values, "backbones": {"vit": {"source": source}}}))
        (line,) = backbone_lines(other, 3)
        assert line.endswith(f"vit {place}; size of the features not known yet")
    values["rerankings"] = {"reranked": {"decoding": "beam", "retriever": "bert"}}
    experiment = Experiment(ExperimentConfig.model_validate(values))
    assert "no encoder is known for more" in next(error.what for error in problems(experiment))
