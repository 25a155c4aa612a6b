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
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest, read_manifest, write_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.extract_pixels import extract_pixels
from vitcapr.store.image_rows import read_image
from vitcapr.store.reader import FeatureStore, open_features

IMAGES = 11


def run(folder: Path, **pixels: int) -> Path:
    """The stage on the data set and the processor in ``folder``."""
    settings = {"backbone": {"source": str(folder / "backbone")}, "pixels": {"chunk": 4, **pixels}}
    sealed = folder / "pixels" / "manifest.json"
    manifest, stores = folder / "data" / "manifest.json", folder / "stores"
    run_stage(extract_pixels, manifest=manifest, stores=stores, sealed=sealed, settings=json.dumps(settings))
    return sealed


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
    return open_features(run(folder))


def expected(data: Manifest, row: int) -> np.ndarray:
    with Image.open(data.image_root / data.images["path"].iloc[row]) as picture:
        return np.asarray(picture.convert("RGB").resize((16, 16), Image.Resampling.BILINEAR))


def test_a_row_is_its_picture_as_the_processor_makes_it(folder: Path, store: FeatureStore) -> None:
    data = read_manifest(folder / "data" / "manifest.json")
    assert store["pixels"].shape == (IMAGES, 16, 16, 3)
    assert store["pixels"].dtype == np.uint8
    assert store.image_ids == data.images["image_id"].tolist()
    for row in range(IMAGES):
        assert np.array_equal(store["pixels"][row], expected(data, row))
    assert np.array_equal(np.asarray(zarr.open_group(store.path, mode="r")["pixels"]), np.asarray(store["pixels"]))


def test_only_new_pictures_are_decoded(folder: Path, store: FeatureStore, monkeypatch: pytest.MonkeyPatch) -> None:
    more = read_manifest(make_dataset(folder / "more", 15))
    order = [12, *range(IMAGES), 14]
    tables = {"images": more.images.iloc[order], "captions": more.captions.iloc[order]}
    write_manifest(folder / "data", dataset="noise", image_root=more.image_root, rejected=[], **tables)
    opened: list[str] = []

    def count(source: ImageSource, path: str, *facts: Any) -> Image.Image:
        opened.append(path)
        return read_image(source, path, *facts)

    monkeypatch.setattr("vitcapr.store.image_rows.read_image", count)
    grown = open_features(run(folder))
    assert sorted(opened) == ["bild_12_ä.png", "bild_14_ä.png"]
    assert np.array_equal(grown["pixels"][1:-1], store["pixels"][:])
    for row, image in ((0, 12), (len(order) - 1, 14)):
        assert np.array_equal(grown["pixels"][row], expected(more, image))
    assert json.loads(grown.manifest_path.read_text())["copied"] == {store.path.parent.name: [[1, IMAGES + 1]]}


def test_a_picture_that_changed_since_the_manifest_is_one_line(folder: Path) -> None:
    data = read_manifest(folder / "data" / "manifest.json")
    Image.new("RGB", (20, 18)).save(data.image_root / data.images["path"].iloc[5])
    with pytest.raises(UserError, match="the image is not the file it was when the manifest was made"):
        run(folder)


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


def test_all_captions_where_none_are_left_out(store: FeatureStore) -> None:
    batches = read(store, captions_per_image=None, shuffle=False)
    assert torch.cat([batch.texts for batch in batches]).tolist() == list(range(3 * IMAGES))


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
