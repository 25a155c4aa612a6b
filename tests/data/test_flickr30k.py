import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.data_photographs import data_photographs

NAMES = ["9.jpg", "10.jpg", "2.jpg", "3.jpg", "4.jpg", "cut.jpg"]
SPLITS = ["train", "train", "val", "test", "train", "test"]
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


@pytest.fixture
def pictures(picture: Callable[..., bytes]) -> dict[str, bytes]:
    files = {name: picture((10 * number, 0, 0), size=(6 + number, 5)) for number, name in enumerate(NAMES)}
    return {**files, "cut.jpg": files["cut.jpg"][:200]}


def texts(name: str, captions: int = 2) -> list[str]:
    return [f"Caption {number} of {name} ." for number in range(captions)]


def release(pictures: dict[str, bytes], **columns: Any) -> pa.Table:
    names = list(columns.pop("filename", pictures))
    rows = {
        "image": pa.array([{"bytes": pictures[name], "path": name} for name in names], IMAGE),
        "caption": columns.pop("caption", [texts(name) for name in names]),
        "sentids": [[str(2 * row), str(2 * row + 1)] for row in range(len(names))],
        "img_id": [str(row) for row in range(len(names))],
        "filename": names,
    }
    return pa.table({**rows, **columns})


def karpathy(path: Path, names: list[str] = NAMES, splits: list[str] = SPLITS) -> Path:
    entries = [
        {"filename": name, "split": split, "sentences": [{"raw": text, "sentid": 0} for text in texts(name)]}
        for name, split in zip(names, splits, strict=True)
    ]
    path.write_text(json.dumps({"images": entries, "dataset": "flickr30k"}))
    return path


def run(output: Path, images: Path, **options: Any) -> Manifest:
    named = {key: str(value) if isinstance(value, Path) else value for key, value in options.items()}
    settings = {"flickr30k": {"images": str(images), **named}, "max_rejected": 1}
    run_stage(data_photographs, output / "log", settings=settings, folder=output)
    return read_manifest(output / "manifest.json")


def split_of(manifest: Manifest) -> dict[str, str]:
    return dict(zip(manifest.images["image_id"], manifest.images["split"], strict=True))


CLEAN = dict(zip(NAMES[:5], ["train", "train", "validation", "test", "train"], strict=True))


def test_a_release_with_a_column_of_splits(tmp_path: Path, pictures: dict[str, bytes]) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    table = release(pictures, split=SPLITS)
    pq.write_table(table.slice(0, 4), folder / "test-00000-of-00002.parquet", row_group_size=2)
    pq.write_table(table.slice(4), folder / "test-00001-of-00002.parquet")
    before = sorted(tmp_path.rglob("*"))
    manifest = run(tmp_path / "out", folder)
    assert split_of(manifest) == CLEAN
    assert manifest.images["image_id"].tolist() == NAMES[:5], "the release's own order"
    assert manifest.images["path"].tolist() == [
        *(f"test-00000-of-00002.parquet/{row:06d}" for row in range(4)),
        "test-00001-of-00002.parquet/000000",
    ]
    assert manifest.captions["caption_id"].tolist() == [f"{name}#{number}" for name in NAMES[:5] for number in (0, 1)]
    assert manifest.captions["text"].tolist() == [text for name in NAMES[:5] for text in texts(name)]
    assert manifest.images["width"].tolist() == [6, 7, 8, 9, 10]
    rejected = (tmp_path / "out" / "rejected.csv").read_text()
    assert "cut.jpg,damaged: " in rejected
    assert "cut.jpg#1,caption of an image left out" in rejected
    with ImageSource(manifest.image_root) as source:
        assert source.read(manifest.images["path"][4]) == pictures["4.jpg"]
    assert sorted(path for path in tmp_path.rglob("*") if tmp_path / "out" not in [path, *path.parents]) == before


def test_a_release_that_is_all_test_needs_the_lists(tmp_path: Path, pictures: dict[str, bytes]) -> None:
    """lmms-lab/flickr30k: one split file of everything."""
    one = tmp_path / "test-00000-of-00001.parquet"
    pq.write_table(release(pictures), one)
    with pytest.raises(UserError, match=r"splits: nothing here names the splits .*dataset_flickr30k\.json"):
        run(tmp_path / "out", one)
    lists = karpathy(tmp_path / "dataset_flickr30k.json", NAMES[:4], SPLITS[:4])
    assert split_of(run(tmp_path / "out", one, lists=lists)) == {**CLEAN, "4.jpg": "none"}
    pq.write_table(release(pictures, split=["test"] * 6), one)
    with pytest.raises(UserError, match="nothing here names the splits"):
        run(tmp_path / "out", one)


def test_rows_without_a_name_and_repeated_images_are_left_out(tmp_path: Path, pictures: dict[str, bytes]) -> None:
    table = release(pictures, filename=[*NAMES[:3], "9.jpg", "4.jpg"], split=["train"] * 5)
    names = pa.array([*NAMES[:3], "9.jpg", None], pa.string())
    pq.write_table(table.set_column(4, "filename", names), tmp_path / "t.parquet")
    manifest = run(tmp_path / "out", tmp_path / "t.parquet")
    assert manifest.images["image_id"].tolist() == NAMES[:3]
    assert (tmp_path / "out" / "rejected.csv").read_text().splitlines()[1:] == [
        "t.parquet/000003,duplicate of image 9.jpg",
        "t.parquet/000004,row without the name of its image",
    ]


def test_files_named_after_their_splits(tmp_path: Path, pictures: dict[str, bytes]) -> None:
    table = release(pictures)
    folder = tmp_path / "release" / "data"
    folder.mkdir(parents=True)
    for name, first, rows in [("train", 0, 2), ("val", 2, 1), ("test", 3, 1)]:
        pq.write_table(table.slice(first, rows), folder / f"{name}-00000-of-00001.parquet")
    manifest = run(tmp_path / "out", tmp_path / "release")
    assert manifest.images["image_id"].tolist() == ["3.jpg", "9.jpg", "10.jpg", "2.jpg"]
    assert split_of(manifest) == {name: CLEAN[name] for name in NAMES[:4]}


def test_a_row_a_caption(tmp_path: Path, pictures: dict[str, bytes]) -> None:
    names = ["9.jpg", "9.jpg", "2.jpg", "9.jpg"]
    table = release(
        pictures, filename=names, caption=["A .", "B .", "C .", "D ."], split=["train", "train", "val", "train"]
    )
    pq.write_table(table, tmp_path / "t.parquet")
    manifest = run(tmp_path / "out", tmp_path / "t.parquet")
    captions = manifest.captions
    assert captions["caption_id"].tolist() == ["9.jpg#0", "9.jpg#1", "9.jpg#2", "2.jpg#0"]
    assert captions["text"].tolist() == ["A .", "B .", "D .", "C ."]


def test_the_papers_reading_is_one_caption_an_image(tmp_path: Path, pictures: dict[str, bytes]) -> None:
    captions = [texts(name) for name in NAMES]
    captions[1] = ["  ", "The second ."]
    pq.write_table(release(pictures, caption=captions, split=SPLITS), tmp_path / "t.parquet")
    manifest = run(tmp_path / "out", tmp_path / "t.parquet", splits="paper")
    assert split_of(manifest) == CLEAN
    assert manifest.captions["caption_id"].tolist() == ["9.jpg#0", "10.jpg#1", "2.jpg#0", "3.jpg#0", "4.jpg#0"]


def test_karpathys_file_with_a_folder(tmp_path: Path, pictures: dict[str, bytes], write_files: Any) -> None:
    files = {f"flickr30k-images/{name}": content for name, content in pictures.items()}
    images = write_files(tmp_path / "i", files)
    text = karpathy(tmp_path / "dataset_flickr30k.json", [*NAMES, "gone.jpg"], [*SPLITS, "train"])
    manifest = run(tmp_path / "out", images, text=text)
    assert split_of(manifest) == CLEAN
    assert manifest.images["image_id"].tolist() == sorted(NAMES[:5])
    assert manifest.images["path"][0] == "flickr30k-images/10.jpg"
    rejected = (tmp_path / "out" / "rejected.csv").read_text()
    assert "gone.jpg,no such file\ngone.jpg#0,caption of an image left out\n" in rejected


def test_the_token_file_with_a_folder(tmp_path: Path, pictures: dict[str, bytes], write_files: Any) -> None:
    images = write_files(tmp_path / "i", pictures)
    lines = [f"{name}#{number}\t{text}" for name in NAMES for number, text in enumerate(texts(name))]
    text = tmp_path / "results_20130124.token"
    text.write_text("\n".join([*lines, "no caption", "9.jpg#0\tTwice .", "gone.jpg#0\tGone ."]))
    with pytest.raises(UserError, match="nothing here names the splits"):
        run(tmp_path / "out", images, text=text)
    manifest = run(tmp_path / "out", images, text=text, lists=karpathy(tmp_path / "lists.json"))
    assert split_of(manifest) == CLEAN
    assert len(manifest.captions) == 11
    rejected = (tmp_path / "out" / "rejected.csv").read_text()
    assert "9.jpg#2" in manifest.captions["caption_id"].tolist()
    assert "gone.jpg#0,caption without an image" in rejected
    assert "results_20130124.token:13,not a line 'image#number<tab>caption'" in rejected


def test_the_table_of_kaggle_with_its_broken_row(tmp_path: Path, pictures: dict[str, bytes], write_files: Any) -> None:
    images = write_files(tmp_path / "i", pictures)
    lines = [f"{name}| {number}| {text}" for name in NAMES for number, text in enumerate(texts(name))]
    lines[0], lines[3] = '9.jpg| 0| "Dog" is written .', "10.jpg| 1   Caption 1 of 10.jpg ."
    text = tmp_path / "results.csv"
    text.write_text("\n".join(["image_name| comment_number| comment", *lines]))
    manifest = run(tmp_path / "out", images, text=text, lists=karpathy(tmp_path / "lists.json"))
    assert split_of(manifest) == CLEAN
    assert manifest.captions["caption_id"].tolist() == [
        *("10.jpg#0", "2.jpg#0", "2.jpg#1", "3.jpg#0", "3.jpg#1", "4.jpg#0", "4.jpg#1", "9.jpg#0", "9.jpg#1")
    ]
    assert manifest.captions["text"].tolist()[-2:] == ['"Dog" is written .', "Caption 1 of 9.jpg ."]
    rejected = (tmp_path / "out" / "rejected.csv").read_text().splitlines()
    assert 'results.csv row 4,"fewer cells than columns: 2, separated by a bar"' in rejected


def test_what_leaks_or_is_unknown_is_refused(tmp_path: Path, pictures: dict[str, bytes]) -> None:
    one = {"filename": ["9.jpg"] * 6, "caption": ["A ."] * 6, "split": SPLITS}
    unknown = {"split": ["train", "held-out"] * 3}
    for columns, message in ((one, "in the train split and in the validation"), (unknown, "unknown split 'held-out'")):
        pq.write_table(release(pictures, **columns), tmp_path / "t.parquet")
        with pytest.raises(UserError, match=message):
            run(tmp_path / "out", tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        ("bare", {}, r"data\.flickr30k\.images: no Parquet files found"),
        ("bare", {"text": "gone.token"}, r"data\.flickr30k\.text: no such file .*results_20130124\.token"),
        (
            "bare",
            {"text": "bare/readme.txt"},
            r"no column 'image_name' or 'image' \(bare/readme\.txt, separated by a comma\)",
        ),
        ("bare", {"text": "wrong.json"}, r"data\.flickr30k\.text: not the file .*: it has no 'filename'"),
        ("bare", {"text": "t.token", "lists": "gone.json"}, r"data\.flickr30k\.lists: no such file"),
        ("foreign", {}, "has no column 'caption' or .*; there are image, words"),
    ],
)
def test_a_wrong_path_names_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_files: Any, images: str, options: Any, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"bare/readme.txt": "read me", "wrong.json": '{"images": [{}]}', "t.token": "a.jpg#0\tA"})
    (tmp_path / "foreign").mkdir()
    pq.write_table(pa.table({"image": [b"1"], "words": ["a"]}), tmp_path / "foreign" / "t.parquet")
    with pytest.raises(UserError, match=message):
        run(tmp_path / "out", Path(images), **options)
