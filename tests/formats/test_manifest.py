import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.checkpoints import flip_bit
from vitcapr.errors import UserError
from vitcapr.files import canonical_json, sha256_bytes, sha256_file
from vitcapr.formats.image_root import LOCATION
from vitcapr.formats.manifest import read_manifest, write_manifest


def images() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "image_id": ["b", "a", "c"],
            "path": ["x/b.png", "x/a.png", "c.png"],
            "split": ["train", "test", "train"],
            "width": [3, 4, 5],
            "height": [1, 2, 3],
            "sha256": ["0" * 64, "1" * 64, "f" * 64],
        }
    )


def captions() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "caption_id": ["1", "2", "3", "4"],
            "language": ["en", "zh", "en", "en"],
            "text": ["hi", "你好", "ho", "ha"],
            "image_row": [0, 0, 1, 2],
        }
    )


def objects() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "image_id": ["b", "b"],
            "object_id": [0, 1],
            "words": [["ball", "balls"], ["cube"]],
            "mask": ["m/b.png", "m/b.png"],
            "label": [1, 2],
            "kind": ["ball", "cube"],
            "color": ["red", "blue"],
            "texture": ["plain", "dotted"],
        }
    )


def write(directory: Path, **changes: object) -> Path:
    arguments = {
        "dataset": "tiny",
        "image_root": directory / "pictures",
        "images": images(),
        "captions": captions(),
        "rejected": [("z.jpg", "empty file"), ("d,e", 'says "no"')],
        "objects": objects(),
    }
    return write_manifest(directory, **{**arguments, **changes})


def test_what_is_written_is_read(tmp_path):
    manifest = read_manifest(write(tmp_path))
    assert manifest.dataset == "tiny"
    assert manifest.image_root == tmp_path / "pictures"
    pd.testing.assert_frame_equal(manifest.images, images(), check_dtype=False)
    owners = images()[["image_id", "split"]].iloc[[0, 0, 1, 2]].reset_index(drop=True)
    whole = captions().join(owners)[manifest.captions.columns]
    pd.testing.assert_frame_equal(manifest.captions, whole, check_dtype=False)
    pd.testing.assert_frame_equal(manifest.objects, objects(), check_dtype=False)
    assert (tmp_path / "rejected.csv").read_text() == 'item,reason\n"d,e","says ""no"""\nz.jpg,empty file\n'
    assert json.loads((tmp_path / "manifest.json").read_text())["counts"] == {
        "images": 3,
        "captions": 4,
        "rejected": 2,
        "objects": 2,
        "splits": {"train": 2, "validation": 0, "test": 1, "none": 0},
        "languages": {"en": 3, "zh": 1},
    }


def test_rows_are_the_identity(tmp_path):
    manifest = read_manifest(write(tmp_path))
    assert manifest.rows("train").tolist() == [0, 2]
    assert manifest.rows("validation").tolist() == []
    assert manifest.rows_of(["c", "a", "c"]).tolist() == [2, 1, 2]
    english = manifest.captions_of("train", "en")
    assert english["caption_id"].tolist() == ["1", "4"]
    assert english["image_row"].tolist() == [0, 2]
    assert english["caption_row"].tolist() == [0, 3]
    assert manifest.captions_of()["image_row"].tolist() == [0, 0, 1, 2]
    assert manifest.captions_of(language="zh")["text"].tolist() == ["你好"]
    with pytest.raises(UserError, match="image 'q' is not in the data set tiny"):
        manifest.rows_of(["a", "q"])
    with pytest.raises(UserError, match="there is no split 'val'; the splits are train, validation"):
        manifest.rows("val")


def test_a_table_is_read_by_column_and_row_across_row_groups(tmp_path, monkeypatch):
    odd = captions().assign(text=["hi", '你"好\\', "ho", "\x7f\u2028"])
    digests = json.loads(write(tmp_path / "whole", captions=odd).read_text())["contents"]
    assert digests["captions"] == sha256_bytes(canonical_json(odd[["caption_id", "text"]].values.tolist()).encode())
    monkeypatch.setattr("vitcapr.formats.containers.ROW_GROUP", 3)
    data = read_manifest(write(tmp_path))
    assert json.loads(write(tmp_path / "parts", captions=odd).read_text())["contents"] == digests
    table = data.caption_table
    assert pq.ParquetFile(table.path).num_row_groups == 2
    assert len(table) == 4
    assert table.column("text").tolist() == ["hi", "你好", "ho", "ha"]
    assert table.rows(np.array([3, 1, 1]), "text", "image_row").values.tolist() == [["ha", 2], ["你好", 0], ["你好", 0]]
    assert [part.index.tolist() for part in table.batches("text")] == [[0, 1, 2], [3]]
    assert data.captions_of("train", "en")[["caption_row", "image_row"]].values.tolist() == [[0, 0], [3, 2]]


def test_same_tables_same_bytes_whatever_their_types_and_index(tmp_path):
    write(tmp_path / "one")
    other = images().astype({"image_id": object, "width": np.int64})
    other.index = [7, 8, 9]
    write(tmp_path / "two", images=other, rejected=[("d,e", 'says "no"'), ("z.jpg", "empty file")])
    for name in ("images.parquet", "captions.parquet", "objects.parquet", "rejected.csv", "manifest.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_the_place_of_the_pictures_changes_no_byte_and_follows_a_move(tmp_path, monkeypatch):
    write(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert read_manifest(tmp_path / "there" / "manifest.json").image_root == tmp_path / "there" / "pictures"
    (tmp_path / "study").mkdir()
    monkeypatch.chdir(tmp_path / "study")
    path = write(Path("out"), image_root=Path("photographs.zip")).resolve()
    outside = write(Path("far"), image_root=tmp_path / "far.zip").resolve()
    assert path.read_bytes() == outside.read_bytes()
    monkeypatch.chdir("/")
    assert read_manifest(outside).image_root == tmp_path / "far.zip"
    shutil.move(tmp_path / "study", tmp_path / "elsewhere")
    moved = tmp_path / "elsewhere" / "out"
    assert read_manifest(moved).image_root == tmp_path / "elsewhere/photographs.zip"
    (moved / LOCATION).unlink()
    with pytest.raises(UserError, match="no file says where the images lie"):
        read_manifest(moved)


@pytest.mark.parametrize("name", ["images.parquet", "captions.parquet", "objects.parquet"])
def test_an_altered_or_missing_table_is_refused(tmp_path, name):
    path = write(tmp_path)
    flip_bit(tmp_path / name, -1)
    table = name.removesuffix(".parquet")
    with pytest.raises(UserError, match=f"not the one that manifest.json seals .*{name}"):
        getattr(read_manifest(path), table)
    (tmp_path / name).unlink()
    with pytest.raises(UserError, match=f"missing .*{name}"):
        getattr(read_manifest(path), table)


def test_a_manifest_is_never_left_beside_tables_of_another_run(tmp_path, monkeypatch):
    path = write(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vitcapr.formats.manifest.write_text", fail)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, images=images().assign(width=9))
    assert not path.exists()


def test_objects_of_an_earlier_run_do_not_stay(tmp_path):
    write(tmp_path)
    assert read_manifest(write(tmp_path, objects=None)).objects is None
    assert not (tmp_path / "objects.parquet").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": images().assign(image_id=["b", "b", "c"])}, "image_id 'b' occurs twice"),
        ({"images": images().assign(path=["p", "q", "p"])}, "path 'p' occurs twice"),
        ({"images": images().assign(path=["p", "q", "/etc/r"])}, "not relative to the image root"),
        ({"images": images().assign(path=["p", "q", "../r"])}, "not relative to the image root"),
        ({"images": images().assign(path=["p", "q", "a\\r"])}, "not relative to the image root"),
        ({"images": images().assign(height=[1, 0, 1])}, "no pixels"),
        ({"images": images().assign(sha256="abc")}, "'abc' is not a sha256"),
        ({"images": images().assign(extra=1)}, "the columns are .*extra"),
        ({"images": images().drop(columns="width")}, "the columns are .*not .*width"),
        ({"images": images().assign(path=["p", None, "q"])}, "column path has empty cells"),
        ({"captions": captions().assign(caption_id=["1", "2", "1", "4"])}, "caption_id '1' occurs twice"),
        ({"captions": captions().iloc[[2, 0, 1, 3]]}, "not in the order of the images"),
        ({"captions": captions().assign(image_row=[-1, 0, 1, 2])}, "of an image that is not there"),
        ({"captions": captions().assign(image_row=[0, 1, 2, 3])}, "of an image that is not there"),
        ({"captions": captions().assign(text=["a", " ", "b", "c"])}, "a caption is empty"),
        ({"objects": objects().assign(image_id="z")}, "object '0' has no image"),
        ({"objects": objects().assign(object_id=0)}, "an object occurs twice"),
        ({"objects": objects().assign(image_id=["c", "b"])}, "objects are not in the order"),
        ({"objects": objects().assign(mask="/m.png")}, "not relative"),
    ],
)
def test_a_reader_that_breaks_the_contract_is_stopped(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path, **change)
    assert not list(tmp_path.iterdir())


def test_nothing_left_is_the_users_to_mend(tmp_path):
    with pytest.raises(UserError, match=r"no image is left.*the first of 2 left out is 'd,e'"):
        write(tmp_path, images=images().iloc[:0], captions=captions().iloc[:0], objects=None)
    with pytest.raises(UserError, match="no caption is left"):
        write(tmp_path, captions=captions().iloc[:0])


def test_an_item_that_is_not_utf8_is_listed(tmp_path):
    write(tmp_path, rejected=[("\udcff.jpg", "image without a caption"), ("=1+1", "-x")])
    table = (tmp_path / "rejected.csv").read_text()
    assert table == "item,reason\n'=1+1,'-x\n\\udcff.jpg,image without a caption\n"


@pytest.mark.parametrize("change", [{"files": []}, {"image_root": 3}, {"format": "vitcapr-manifest-0"}, None])
def test_a_manifest_of_other_content_is_refused(tmp_path, change):
    path = write(tmp_path)
    path.write_text("{}" if change is None else json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match="not a data manifest"):
        read_manifest(path)
    path.unlink()
    with pytest.raises(UserError, match="no such file"):
        read_manifest(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: images().assign(width="1").to_parquet(file, index=False),
        lambda file: file.write_bytes(b"PAR1 nothing"),
    ],
)
def test_a_sealed_table_of_another_format_is_refused(tmp_path, damage):
    path, file = write(tmp_path), tmp_path / "images.parquet"
    damage(file)
    content = json.loads(path.read_text())
    content["files"][file.name] = sha256_file(file)
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="not a table of a data manifest"):
        read_manifest(path).rows("train")
