"""The whole stage, on pictures of a few pixels."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.formats.pair_files import read_pair_table
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.data_pairs import data_pairs


def picture(folder: Path, name: str, shade: int) -> bytes:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (5, 4), (shade, shade, 100)).save(file)
    return file.read_bytes()


def run(folder: Path, withdrawn: str | None = None, **pairs: Any) -> Manifest:
    settings = {"pairs": {"test_images": 2, **pairs}, "max_rejected": 1, "withdrawn": withdrawn}
    run_stage(data_pairs, settings=settings, folder=folder / "data")
    return read_manifest(folder / "data" / "manifest.json")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """12 pictures with an English and a Chinese text each, and the dirt a table can have."""
    rows = []
    for number in range(12):
        picture(tmp_path, f"pictures/{number:02d}.png", number)
        rows += [
            {"text": f"Wow, dog number {number} !", "image": f"pictures/{number:02d}.png"},
            {"text": f"第 {number} 只狗。", "image": f"pictures/{number:02d}.png"},
        ]
    picture(tmp_path, "pictures/copy.png", 3)
    (tmp_path / "pictures" / "bad.png").write_bytes(b"no")
    rows += [
        {"text": "a copy of the fourth", "image": "pictures/copy.png"},
        {"text": "a", "image": "pictures/bad.png"},
        {"text": "b", "image": "pictures/gone.png"},
        {"text": "?!", "image": "pictures/00.png"},
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "pairs.csv", index=False)
    return tmp_path / "pairs.csv"


def test_the_manifest_and_what_stands_beside_it(tmp_path: Path, table: Path) -> None:
    data = run(tmp_path, table=str(table))
    assert data.dataset == "pairs"
    assert data.image_root == tmp_path
    assert data.images["path"].tolist() == [f"pictures/{number:02d}.png" for number in range(12)]
    assert data.images["split"].value_counts().to_dict() == {"train": 7, "validation": 3, "test": 2}
    assert sorted(data.captions_of(language="en")["text"])[:2] == ["a copy of the fourth", "dog number 0"]
    assert data.captions["text"][data.captions["image_id"] == "pictures/03.png"].tolist() == [
        "dog number 3",
        "第3只狗",
        "a copy of the fourth",
    ]
    beside = read_pair_table(tmp_path / "data" / "pairs.parquet", data.captions["caption_id"].tolist())
    assert beside["raw"].iloc[:2].tolist() == ["Wow, dog number 0 !", "第 0 只狗。"]
    assert set(beside["category"]) == {"animal"}
    rejected = (tmp_path / "data" / "rejected.csv").read_text().splitlines()[1:]
    assert rejected == [
        "pictures/bad.png,not an image in a known format",
        "pictures/copy.png,copy of an image: pictures/03.png",
        "pictures/gone.png,no such file",
        "row-26,caption of an image left out",
        "row-27,caption of an image left out",
        "row-28,nothing left of the caption after cleaning",
    ]
    cleaning = json.loads((tmp_path / "data" / "cleaning.json").read_text())
    assert cleaning["languages"]["en"]["fillers"] == 12


def test_pools_are_of_the_test_split_and_pairs_of_none_other(tmp_path: Path, table: Path) -> None:
    data = run(tmp_path, table=str(table), queries=1)
    with np.load(tmp_path / "data" / "pools.npz") as pools:
        assert pools["image_candidates"].tolist() == data.rows("test").tolist()
        test = data.captions_of("test")["caption_row"].tolist()
        assert pools["text_candidates"].tolist() == test
        assert len(pools["image_queries"]) == len(pools["text_queries"]) == 1
        assert set(pools["text_queries"].tolist()) < set(test)
    splits = json.loads((tmp_path / "data" / "pairs.json").read_text())["splits"]
    assert {split: mixture["images"] for split, mixture in splits.items()} == {"train": 7, "validation": 3, "test": 2}
    assert sum(mixture["pairs"] for mixture in splits.values()) == len(data.captions) == 25


def test_a_given_class_goes_before_the_words_and_a_given_test_split_is_kept(tmp_path: Path, table: Path) -> None:
    rows = pd.read_csv(table)
    rows["category"] = rows["image"].map({"pictures/00.png": "sport"})
    rows["split"] = ["test" if image.endswith("05.png") else "" for image in rows["image"]]
    rows.to_csv(tmp_path / "pairs.tsv", sep="\t", index=False)
    data = run(tmp_path, table=str(tmp_path / "pairs.tsv"), test_images=0)
    assert data.images["path"][data.rows("test")].tolist() == ["pictures/05.png"]
    beside = read_pair_table(tmp_path / "data" / "pairs.parquet", data.captions["caption_id"].tolist())
    sport = data.captions["image_id"][beside["category"] == "sport"]
    assert sport.tolist() == ["pictures/00.png"] * 2


def test_training_pairs_are_sampled_and_test_pictures_keep_all_pairs(tmp_path: Path, table: Path) -> None:
    data = run(tmp_path, table=str(table), pairs=9)
    learnt = data.captions[data.captions["split"] != "test"]
    assert len(learnt) == 9
    assert set(learnt["image_id"]) == set(data.images["image_id"][data.images["split"] != "test"])
    assert len(data.captions_of("test")) >= 4


def test_a_test_split_that_leaves_nothing_to_train_on_is_one_line(tmp_path: Path, table: Path) -> None:
    with pytest.raises(UserError, match=r"the test split has all 12 images .*; lower data\.pairs\.test_images"):
        run(tmp_path, table=str(table), test_images=99)


def test_a_withdrawn_picture_of_a_table_is_in_no_file(tmp_path: Path) -> None:
    pictures = [picture(tmp_path, f"{number}.png", number) for number in range(6)]
    rows = [{"text": f"a dog, {number}", "image": b64encode(each).decode()} for number, each in enumerate(pictures)]
    pd.DataFrame(rows).to_csv(tmp_path / "pairs.csv", index=False)
    gone = sha256_bytes(pictures[3])
    pairs = {"table": str(tmp_path / "pairs.csv"), "encoding": "base64"}
    assert gone in run(tmp_path, **pairs).images["image_id"].tolist()
    (tmp_path / "withdrawn.csv").write_text(f"image_id,sha256\n{gone},{gone}\n", encoding="utf-8")
    assert len(run(tmp_path, withdrawn=str(tmp_path / "withdrawn.csv"), **pairs).images) == 5
    written = [path.read_bytes() for path in (tmp_path / "data").rglob("*.*") if path.suffix != ".parquet"]
    assert pictures[3] not in [path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert not any(gone.encode() in content for content in written)
    assert "a dog, 3" not in set(read_manifest(tmp_path / "data").captions["text"])


def test_flickr8k_in_two_languages(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.mkdir()
    names = [f"{number}.jpg" for number in range(6)]
    for shade, name in enumerate(names):
        picture(tmp_path, f"images/{name}", 10 * shade)
    (text / "Flickr8k.token.txt").write_text("".join(f"{name}#0\tA dog .\n" for name in names))
    for kind, mine in (("train", names[:3]), ("dev", names[3:4]), ("test", names[4:])):
        (text / f"Flickr_8k.{kind}Images.txt").write_text("\n".join(mine))
    lines = [f"{name}#zhc#0 一只狗。" for name in names] + ["x.jpg#zhc#0 无", "broken"]
    (tmp_path / "zh.txt").write_text("\n".join(lines), encoding="utf-8")
    settings = {
        "max_rejected": 0.2,
        "pairs": {"source": "flickr8k", "chinese": str(tmp_path / "zh.txt")},
        "flickr8k": {"images": str(tmp_path / "images"), "text": str(text)},
    }
    run_stage(data_pairs, settings=settings, folder=tmp_path / "data")
    data = read_manifest(tmp_path / "data" / "manifest.json")
    assert data.images["image_id"][data.images["split"] == "test"].tolist() == names[4:]
    assert data.captions["text"].iloc[:2].tolist() == ["A dog", "一只狗"]
    assert (tmp_path / "data" / "rejected.csv").read_text().splitlines()[1:] == [
        "x.jpg#zhc#0,caption without an image",
        "zh.txt:8,not a line 'image#zhc#number caption'",
    ]
