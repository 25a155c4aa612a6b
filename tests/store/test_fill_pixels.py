"""The store of decoded pictures, and the batches that are drawn from it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr
from PIL import Image

from tests.checkpoints import PROCESSOR, make_dataset
from vitcapr.batches.augment import Augmentation, Draws, augment
from vitcapr.batches.loader import Batch
from vitcapr.batches.pixel_batches import PixelBatches
from vitcapr.batches.texts import CaptionRows
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.extract_pixels import extract_pixels
from vitcapr.store.reader import FeatureStore, open_features

IMAGES = 11


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_dataset(tmp_path / "data", IMAGES)
    backbone = tmp_path / "backbone"
    backbone.mkdir()
    (backbone / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    (backbone / "config.json").write_text(json.dumps({"model_type": "vit", "image_size": 16}))
    return tmp_path


@pytest.fixture
def store(folder: Path) -> FeatureStore:
    """The stage on the data set and the processor in ``folder``."""
    settings = {"backbone": {"source": str(folder / "backbone")}, "features": {"chunk": 4}}
    sealed, manifest = folder / "pixels" / "manifest.json", folder / "data" / "manifest.json"
    stores = str(folder / "stores")
    run_stage(extract_pixels, manifest=manifest, stores=stores, sealed=sealed, settings=json.dumps(settings))
    return open_features(sealed)


def test_a_row_is_its_picture_as_the_processor_makes_it(folder: Path, store: FeatureStore) -> None:
    data = read_manifest(folder / "data" / "manifest.json")
    assert store["pixels"].shape == (IMAGES, 16, 16, 3)
    assert store["pixels"].dtype == np.uint8
    assert store.image_ids == data.images["image_id"].tolist()
    for row, path in enumerate(data.images["path"]):
        with Image.open(data.image_root / path) as picture:
            resized = picture.convert("RGB").resize((16, 16), Image.Resampling.BILINEAR)
        assert np.array_equal(store["pixels"][row], np.asarray(resized))
    assert np.array_equal(np.asarray(zarr.open_group(store.path, mode="r")["pixels"]), np.asarray(store["pixels"]))


def captions(per_image: int = 3) -> CaptionRows:
    """Caption m belongs to image m // per_image."""
    return CaptionRows(np.arange(IMAGES * per_image), np.repeat(np.arange(IMAGES), per_image))


def read(store: FeatureStore, **options: object) -> list[Batch]:
    chosen: dict[str, Any] = {"captions_per_image": 1, **options}
    return list(PixelBatches(store, captions(), np.arange(IMAGES), 4, **chosen))


def test_batches_hold_every_picture_once_with_a_caption_of_its_own(store: FeatureStore) -> None:
    batches = read(store, seed=1)
    rows = torch.cat([batch.rows for batch in batches])
    assert sorted(rows.tolist()) == list(range(IMAGES))
    assert rows.tolist() != list(range(IMAGES))
    mean, std = torch.tensor(PROCESSOR["image_mean"]), torch.tensor(PROCESSOR["image_std"])
    for batch in batches:
        assert (batch.texts // 3).tolist() == batch.rows[batch.image_index].tolist()
        assert batch.image_index.tolist() == list(range(len(batch.rows)))
        pixels = torch.from_numpy(store["pixels"].gather(batch.rows.numpy())) / 255
        torch.testing.assert_close(
            batch.features["pixels"], ((pixels - mean) / std).permute(0, 3, 1, 2), atol=1e-5, rtol=0
        )


def test_the_same_bytes_again_from_any_batch_on(store: FeatureStore) -> None:
    wild = Augmentation(probability=1.0)
    whole = read(store, augmentation=wild, seed=5, epoch=3)
    rest = read(store, augmentation=wild, seed=5, epoch=3, start_batch=1)
    assert len(rest) == len(whole) - 1
    for first, again in zip(whole[1:], rest, strict=True):
        assert torch.equal(first.features["pixels"], again.features["pixels"])
        assert torch.equal(first.texts, again.texts)
    other = read(store, augmentation=wild, seed=5, epoch=4)
    assert not torch.equal(whole[0].features["pixels"], other[0].features["pixels"])


def test_augmentation_goes_by_the_row_of_the_picture(store: FeatureStore) -> None:
    wild = Augmentation(probability=1.0)
    batch = read(store, augmentation=wild, seed=5, epoch=3)[1]
    pixels = torch.from_numpy(store["pixels"].gather(batch.rows.numpy()))
    changed = augment(pixels, Draws.of(wild, 5, 3, batch.rows.tolist()), wild.radius) / 255
    mean, std = torch.tensor(PROCESSOR["image_mean"]), torch.tensor(PROCESSOR["image_std"])
    torch.testing.assert_close(
        batch.features["pixels"], ((changed - mean) / std).permute(0, 3, 1, 2), atol=1e-5, rtol=0
    )
