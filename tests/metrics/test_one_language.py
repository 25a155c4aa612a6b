"""Scores of one language where not every picture has a caption in it."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.data_sets import write_data_set
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.score_retrieval import score_retrieval
from vitcapr.stages.select_language import select_language


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three test pictures: the second has a Chinese caption only. Every caption points exactly at its picture."""
    spoken = [("a", "en"), ("a", "zh"), ("b", "zh"), ("c", "en"), ("c", "en")]
    write_data_set(tmp_path, dict.fromkeys("abc", "test"), [(*caption, "dog") for caption in spoken])
    owner = np.array([0, 0, 1, 2, 2], np.int32)
    vectors = np.eye(3, dtype=np.float32)
    np.savez(
        tmp_path / "both.npz",
        images=vectors,
        captions=vectors[owner],
        image_row=np.arange(3, dtype=np.int32),
        caption_row=np.arange(5, dtype=np.int32),
        caption_image=owner,
    )
    return tmp_path


def score(folder: Path, name: str) -> dict:
    run_stage(
        score_retrieval,
        embeddings=folder / f"{name}.npz",
        manifest=folder / "manifest.json",
        split="test",
        metrics=folder / "metrics.json",
        ranks=folder / "ranks.npz",
        settings=json.dumps({"metrics": {"bootstrap_samples": 0}}),
    )
    return json.loads((folder / "metrics.json").read_text())


def keep(folder: Path, language: str) -> None:
    run_stage(
        select_language,
        all_languages=folder / "both.npz",
        manifest=folder / "manifest.json",
        language=language,
        embeddings=folder / f"{language}.npz",
    )


def test_a_picture_without_a_caption_in_the_language_is_in_no_pool(folder: Path) -> None:
    assert score(folder, "both")["protocol"].startswith("pool:3images,5captions|")
    keep(folder, "en")
    with np.load(folder / "en.npz") as kept:
        assert kept["image_row"].tolist() == [0, 2]
        assert kept["caption_row"].tolist() == [0, 3, 4]
        assert kept["caption_image"].tolist() == [0, 1, 1]
    found = score(folder, "en")
    assert found["protocol"].startswith("pool:2images,3captions|")
    assert "|lang:en" in found["protocol"]
    assert found["metrics"]["t2i_recall_1"] == {"value": 1.0, "low": None, "high": None, "n": 2}
