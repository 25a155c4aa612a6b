"""Pictures in Parquet files through the image half of a checkpoint, into a store and out of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import vitcapr
from tests.data_sets import encoded
from tests.encoders.two_towers import QUERIES, blip2_itm, blip2_t5, clip
from vitcapr.data.images import ImageSource
from vitcapr.encoders.photographs import open_like
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.data_photographs import data_photographs
from vitcapr.store.reader import FeatureStore, open_features

IMAGES = 10


def picture(number: int) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (20 + number, 24, 3), dtype=np.uint8)
    return encoded(Image.fromarray(pixels))


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """Ten pictures in two row groups; no picture is a file."""
    rows = {
        "image": [{"bytes": picture(number), "path": None} for number in range(IMAGES)],
        "caption": [["One .", "Two ."]] * IMAGES,
        "filename": [f"{number}.png" for number in range(IMAGES)],
        "split": ["train"] * 8 + ["val", "test"],
    }
    folder = tmp_path / "release"
    folder.mkdir()
    pq.write_table(pa.table(rows), folder / "test-0.parquet", row_group_size=6)
    settings = {"flickr30k": {"images": str(folder)}}
    run_stage(data_photographs, settings=settings, folder=tmp_path / "data")
    return tmp_path / "data" / "manifest.json"


def run(manifest: Path, checkpoint: Path, **backbone: Any) -> FeatureStore:
    options = {"batch": 2, "chunk": 4, "dtype": "float32", "store_dtype": "float32", **backbone}
    return open_features(vitcapr.extract(manifest, str(checkpoint), manifest.parents[1] / "features", **options))


@pytest.mark.parametrize(
    ("make", "options", "shapes"),
    [
        (blip2_t5, {"output": "qformer", "pool": "max"}, {"cls": (8,), "patches": (QUERIES, 8)}),
        (blip2_itm, {"output": "aligned"}, {"cls": (6,), "patches": (QUERIES, 6)}),
        (clip, {"output": "aligned"}, {"cls": (6,)}),
    ],
)
def test_a_store_of_any_output(
    manifest: Path,
    tmp_path: Path,
    make: Callable[..., Path],
    options: dict[str, str],
    shapes: dict[str, tuple[int, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    checkpoint = make(tmp_path / "checkpoint")
    store = run(manifest, checkpoint, **options)
    assert {name: array.shape for name, array in store.items()} == {name: (IMAGES, *s) for name, s in shapes.items()}
    assert store.grid == (0, 0)
    assert store.attributes["output"] == options["output"]
    log = capsys.readouterr().err
    assert "peak memory " in log
    assert f"patches {QUERIES} x {shapes['cls'][0]}" in log or "cls 6, " in log

    encoder = open_like(store.attributes, torch.device("cpu"), str(checkpoint))
    with ImageSource(read_manifest(manifest).image_root) as source:
        rows = [7, 2]
        pictures = [source.open(f"test-0.parquet/{row:06d}", 10_000) for row in rows]
    assert [p.height for p in pictures] == [27, 22]
    made = encoder.encode(pictures)
    for name, array in made.items():
        np.testing.assert_allclose(array.numpy(), store[name][rows], atol=1e-5)
    assert (encoder.dim,) == shapes["cls"]


def test_a_mirrored_store_holds_the_features_of_flipped_pictures(manifest: Path, tmp_path: Path) -> None:
    checkpoint = clip(tmp_path / "checkpoint")
    plain = run(manifest, checkpoint)
    encoder = open_like(plain.attributes, torch.device("cpu"), str(checkpoint))
    with ImageSource(read_manifest(manifest).image_root) as source:
        pictures = [source.open(f"test-0.parquet/{row:06d}", 10_000) for row in range(IMAGES)]
    as_they_are = {name: array[:] for name, array in plain.items()}
    mirrored = run(manifest, checkpoint, mirror=True)
    assert mirrored.fingerprint != plain.fingerprint
    flipped = encoder.encode([Image.fromarray(np.asarray(picture)[:, ::-1]) for picture in pictures])
    seen = open_like(mirrored.attributes, torch.device("cpu"), str(checkpoint)).encode(pictures)
    for name, array in mirrored.items():
        np.testing.assert_allclose(array[:], flipped[name].numpy(), atol=1e-5)
        np.testing.assert_allclose(array[:], seen[name].numpy(), atol=1e-5)
        assert np.abs(array[:] - as_they_are[name]).max() > 0.01
