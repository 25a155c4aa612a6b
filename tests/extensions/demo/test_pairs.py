"""Rendered scenes as a data set of pairs."""

import io
from pathlib import Path

import pyarrow.parquet as pq

from vitcapr.extensions.demo.dataset import write_scenes
from vitcapr.extensions.demo.settings import ScenesConfig
from vitcapr.extensions.demo.stages.data_scene_pairs import data_scene_pairs
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.progress import Reporter


def test_rendered_pictures_in_both_languages(tmp_path: Path) -> None:
    settings = {"pairs": {"source": "scenes", "pairs": 60}, "scenes": {"images": 12, "size": 32, "test": 0.2}}
    run_stage(data_scene_pairs, settings=settings, folder=tmp_path / "data")
    data = read_manifest(tmp_path / "data" / "manifest.json")
    assert len(data.captions[data.captions["split"] != "test"]) == 60
    assert pq.read_table(tmp_path / "data" / "pairs.parquet").num_rows == len(data.captions)
    # Pairs are split anew, so no picture is the near duplicate of another, which may be in another split.
    scenes, quiet = ScenesConfig(images=12, size=32, test=0.2), Reporter(stream=io.StringIO())
    plain = write_scenes(tmp_path / "plain", scenes, 1, quiet, near_duplicates=False)
    assert set(data.images["sha256"]) == set(read_manifest(plain).images["sha256"])
    assert set(data.captions["language"]) == {"en", "zh"}
