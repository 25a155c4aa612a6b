"""A store as datasets of PyTorch and of Hugging Face: numbers, disjoint shares, and the position after a stop."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import vitcapr
from tests.commands.stores import write_store
from tests.data_sets import write_data_set, write_noise
from vitcapr.errors import UserError
from vitcapr.torch import FeatureBatches, FeatureDataset

IMAGES = [f"{number:02d}" for number in range(13)]
ROWS = np.arange(13, dtype=np.float16)
SPLITS = {image: "test" if image == "05" else "train" for image in IMAGES}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """13 images, 12 of them for training; the numbers of row r are r. Image 07 has no caption, the others have two."""
    root = tmp_path_factory.mktemp("study")
    write_noise(root / "pictures", [f"{image}.png" for image in IMAGES])
    captions = [(image, "en", f"{image} {n}") for image in IMAGES if image != "07" for n in "ab"]
    write_data_set(root / "data", SPLITS, captions, "toy", root / "pictures", "{}.png".format)
    arrays = {
        "cls": np.repeat(ROWS[:, None], 2, 1),
        "patches": np.broadcast_to(ROWS[:, None, None], (13, 4, 2)).copy(),
        "patches_1": np.broadcast_to(-ROWS[:, None, None], (13, 4, 2)).copy(),
    }
    write_store(root, arrays, IMAGES, chunk=4, sealed="images/manifest.json", grid=[2, 2])
    ids = vitcapr.read_manifest(root / "data").captions_of()["caption_id"].tolist()
    features = {"text": np.arange(24, dtype=np.float32)[:, None]}
    write_store(root, features, ids, "caption_id", chunk=5, sealed="texts/manifest.json")
    return root


def test_a_sample_lies_in_the_map_of_the_store(study: Path) -> None:
    dataset = FeatureDataset(study / "images", study / "data", split="train", layers=[1], tokens=["patches"])
    assert len(dataset) == 12
    sample = dataset[6]
    assert (sample["row"], sample["id"], sample["captions"]) == (7, "07", [])
    assert sample.keys() == {"patches", "patches_1", "row", "id", "captions", "caption_rows"}
    assert (sample["patches"] == 7).all()
    assert (sample["patches_1"] == -7).all()
    assert sample["patches"].data_ptr() == dataset[6]["patches"].data_ptr(), "two reads are the same memory"
    assert dataset[0]["captions"] == ["00 a", "00 b"]
    texts = FeatureDataset(study / "texts", study / "data", split="test")
    assert [(one["row"], one["text"].item(), one["captions"]) for one in texts] == [
        (10, 10, ["05 a"]),
        (11, 11, ["05 b"]),
    ]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_read_every_row_once(study: Path, context: str) -> None:
    dataset = FeatureDataset(study / "images", study / "data", split="train")
    loader = DataLoader(dataset, 5, num_workers=2, multiprocessing_context=context, collate_fn=dataset.collate)
    read = [*loader]
    assert torch.cat([batch["row"] for batch in read]).tolist() == dataset.rows.tolist()
    assert (torch.cat([batch["cls"] for batch in read])[:, 0] == torch.from_numpy(ROWS[dataset.rows])).all()
    batches = FeatureBatches(study / "images", split=None, batch_images=2)
    shared = DataLoader(batches, batch_size=None, num_workers=2, multiprocessing_context=context)
    assert sorted(torch.cat([batch["rows"] for batch in shared]).tolist()) == [*range(13)]


def rows_of(batches: Any) -> list[int]:
    return [row for batch in batches for row in batch["rows"].tolist()]


def test_batches_continue_at_the_same_sample(study: Path) -> None:
    def new(**options: Any) -> FeatureBatches:
        files = {"text_features": study / "texts", "captions_per_image": 1, "batch_images": 3}
        return FeatureBatches(study / "images", study / "data", split="train", **files, **options)

    whole = new()
    first, second = rows_of(whole), rows_of(whole)
    assert sorted(first) == sorted(second) == [0, 1, 2, 3, 4, 6, 8, 9, 10, 11, 12]
    assert first != second
    assert len(whole) == 4
    stopped, resumed = new(), new()
    begun = iter(stopped)
    start = [next(begun), next(begun)]
    resumed.load_state_dict(stopped.state_dict())
    assert rows_of(start) + rows_of(resumed) == first
    assert rows_of(resumed) == second
    for batch in new(seed=1):
        rows = batch["rows"][batch["image_index"]]
        assert (batch["texts"][:, 0] // 2 == rows - (rows > 7).int()).all(), "the features of captions of the image"
        assert (batch["cls"][:, 0] == batch["rows"]).all()
    fresh = new()
    fresh.set_epoch(1)
    assert rows_of(fresh) == second


def test_processes_of_torchrun_read_disjoint_rows(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [batch["rows"].tolist() for batch in FeatureBatches(study / "images", batch_images=4)]
    assert list(map(len, alone)) == [4, 4, 4, 1]
    monkeypatch.setenv("WORLD_SIZE", "2")
    shares = []
    for rank in range(2):
        monkeypatch.setitem(os.environ, "RANK", str(rank))
        shares.append([batch["rows"].tolist() for batch in FeatureBatches(study / "images", batch_images=4)])
    assert [one + other for one, other in zip(*shares, strict=True)] == alone[:3]


def test_a_table_of_hugging_face_is_the_store(study: Path) -> None:
    pytest.importorskip("datasets")
    table = vitcapr.to_datasets(study / "images", study / "data", "train")
    assert len(table) == 12
    seen = table.with_format("torch")[:]
    assert seen["patches"].shape == (12, 4, 2)
    assert torch.equal(seen["cls"][:, 0], torch.from_numpy(np.delete(ROWS, 5)).float())
    assert (table[6]["id"], table[6]["captions"], table[0]["captions"]) == ("07", [], ["00 a", "00 b"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "train"}, "which images are in the split 'train'"),
        ({"layers": [2]}, "has no 'cls_2'"),
        ({"tokens": ["text"]}, "has no 'text'"),
    ],
)
def test_what_a_store_does_not_have_is_one_line(study: Path, options: dict[str, Any], message: str) -> None:
    for kind in (FeatureDataset, FeatureBatches):
        with pytest.raises(UserError, match=message):
            kind(study / "images", **options)
    with pytest.raises(UserError, match="captions are asked for without a data set"):
        FeatureBatches(study / "images", captions_per_image=1)


def test_a_store_of_other_images_is_one_line(study: Path, tmp_path: Path) -> None:
    write_data_set(tmp_path, {"a": "train"}, [("a", "en", "a dog")])
    with pytest.raises(UserError, match="not those of the images of the data set"):
        FeatureDataset(study / "images", tmp_path)
