"""The store of captions: what is in it, and what new captions cost."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import vitcapr
from tests.checkpoints import extract_text, save_bert
from tests.data_sets import rewrite, write_data_set
from vitcapr.encoders.text_encoders import TextRecipe
from vitcapr.formats.manifest import read_manifest

IMAGES = 5


def caption(number: int) -> str:
    return " ".join(["a", "red", "dog", "runs"][: 1 + number % 4]) + " ."


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A data set of five images with two captions each, and a random text model among the backbones."""
    splits = dict(zip((f"ä{number}" for number in range(IMAGES)), ["train"] * 3 + ["validation", "test"], strict=True))
    captions = [(f"ä{number // 2}", "en", caption(number)) for number in range(2 * IMAGES)]
    manifest = write_data_set(tmp_path / "data", splits, captions)
    backbones = save_bert(tmp_path / "backbones" / "tiny-bert", ["a", "red", "dog", "runs", "."])
    monkeypatch.setenv("VITCAPR_BACKBONES", str(backbones.parent))
    monkeypatch.setattr("vitcapr.store.caption_rows.CHUNK", 4)
    return {"manifest": manifest, "root": tmp_path}


def run(files: dict[str, Path], name: str = "a", **settings: object) -> Path:
    encoder = {"dtype": "float32", "max_length": 8, **settings}
    return extract_text(files["manifest"], "tiny-bert", files["root"] / name / "bert", **encoder)


def expected() -> np.ndarray:
    recipe = {"revision": "main", "output": "hidden", "pool": "mean", "dtype": "float32", "max_length": 8}
    encoder = TextRecipe("tiny-bert", torch.device("cpu"), **recipe).load()
    return np.concatenate([encoder.encode([caption(number)]) for number in range(2 * IMAGES)])


def test_a_row_a_caption(files: dict[str, Path]) -> None:
    store = vitcapr.open_features(run(files, store_dtype="float32"))
    assert list(store) == ["text"]
    np.testing.assert_allclose(store["text"][:], expected(), atol=1e-5)
    assert store.ids == [f"ä{number // 2}#{number % 2}" for number in range(2 * IMAGES)]
    assert (store.identity, store.image_ids, store.grid) == ("caption_id", [], (0, 0))
    assert store.attributes["backbone"] == "tiny-bert"
    assert "10 captions" in repr(store)


def test_only_new_captions_are_computed(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    old = vitcapr.open_features(run(files))
    data = read_manifest(files["manifest"])
    captions = data.captions.assign(text=["a dog .", *data.captions["text"][1:9], "runs ."])
    changed = run({**files, "manifest": rewrite(data, files["root"] / "changed", captions=captions)})
    assert "2 of 10 captions to do" in capsys.readouterr().err
    new = vitcapr.open_features(changed)
    np.testing.assert_array_equal(new["text"][1:9], old["text"][1:9])
    assert (new["text"][[0, 9]] != old["text"][[0, 9]]).any(axis=1).all()
    assert json.loads((changed / "manifest.json").read_text())["copied"] == {old.path.parent.name: [[1, 9]]}


def test_cut_captions_are_counted(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    run(files, max_length=5)
    assert "7 captions have max_length (5) tokens" in capsys.readouterr().err
