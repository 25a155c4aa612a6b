"""The store of decoded pictures, and the batches that are drawn from it."""

import json
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr
from PIL import Image

from tests.checkpoints import PROCESSOR, make_dataset
from vitcapr.batches.image_batches import Batch, Batches
from vitcapr.batches.sources import MemoryArray
from vitcapr.batches.texts import FeatureTexts
from vitcapr.data.images import ImageSource
from vitcapr.encoders.image_recipe import preprocessing_of
from vitcapr.encoders.preprocess import read_preprocessing
from vitcapr.errors import UserError
from vitcapr.extensions.finetuning.augment import Augmentation, Draws, PixelInput, augment
from vitcapr.extensions.finetuning.stages.extract_pixels import extract_pixels
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.store.image_rows import Pixels
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
    run_stage(extract_pixels, manifest=manifest, stores=stores, sealed=sealed, settings=settings)
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


def test_for_a_gpu_processes_decode_the_same_pixels(folder: Path, store: FeatureStore) -> None:
    with decoder(folder) as pixels:
        rows = [np.array([2, 0, 7]), np.array([5]), np.arange(IMAGES)]
        for batch, decoded in zip(rows, pixels.decoded(rows, torch.device("cuda")), strict=True):
            assert np.array_equal(decoded.numpy(), store["pixels"][:][batch])


def test_what_ends_a_process_that_decodes_is_one_line(folder: Path) -> None:
    with decoder(folder) as pixels:
        manifest = read_manifest(folder / "data" / "manifest.json")
        changed = manifest.image_root / manifest.images["path"][3]
        changed.write_bytes(b"another")
        with pytest.raises(UserError, match=f"is not the file it was .*{changed.name}") as raised:
            list(pixels.decoded([np.arange(4)], torch.device("cuda")))
        assert "run the data stage again" in str(raised.value)
        decoding = pixels.decoded([np.array([0])] * 1000, torch.device("cuda"))
        next(decoding)
        for child in multiprocessing.active_children():
            child.kill()
        with pytest.raises(UserError, match="a process that decoded images was killed"):
            list(decoding)


@contextmanager
def decoder(folder: Path) -> Iterator[Pixels]:
    data = read_manifest(folder / "data" / "manifest.json")
    preprocessing, _ = read_preprocessing(folder / "backbone", (16, 16))
    with ImageSource(data.image_root) as source:
        yield Pixels(data.image_table, source, preprocessing)


def read(store: FeatureStore, pixels: PixelInput, **options: Any) -> list[Batch]:
    """Batches of four pictures, each with one of its three captions, which are their own numbers."""
    owner = np.repeat(np.arange(IMAGES), 3)
    texts = FeatureTexts(MemoryArray(np.arange(len(owner))), np.arange(len(owner)), owner)
    chosen: dict[str, Any] = {"arrays": ("pixels",), "captions_per_image": 1, **options}
    return [
        replace(batch, features=pixels(batch.features, batch.rows.tolist(), options.get("epoch")))
        for batch in Batches(store, texts, np.arange(IMAGES), 4, **chosen)
    ]


def expected(pixels: torch.Tensor) -> torch.Tensor:
    """Normalised."""
    mean, std = torch.tensor(PROCESSOR["image_mean"]), torch.tensor(PROCESSOR["image_std"])
    return ((pixels / 255 - mean) / std).permute(0, 3, 1, 2)


def test_pictures_are_augmented_by_seed_epoch_and_row(store: FeatureStore) -> None:
    wild = Augmentation(probability=1.0)
    pixels = PixelInput(preprocessing_of(store.attributes), wild, seed=5)
    whole = read(store, pixels, seed=5, epoch=3)
    for first, again in zip(whole[1:], read(store, pixels, seed=5, epoch=3, start_batch=1), strict=True):
        assert torch.equal(first.features["pixels"], again.features["pixels"])
        assert torch.equal(first.texts, again.texts)
        stored = torch.from_numpy(store["pixels"].gather(first.rows.numpy()))
        changed = augment(stored, Draws.of(wild, 5, 3, first.rows.tolist()), wild.radius)
        torch.testing.assert_close(first.features["pixels"], expected(changed), atol=1e-5, rtol=0)
    for batch in read(store, pixels, seed=1):  # Without an epoch, as for validation, they stay as they are.
        stored = torch.from_numpy(store["pixels"].gather(batch.rows.numpy()))
        torch.testing.assert_close(batch.features["pixels"], expected(stored), atol=1e-5, rtol=0)
