"""Captions beside the images, and what of them is not used. tests/torture/layouts.py writes every layout."""

import io
import json
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.test_table import captions_of, rejected, run
from vitcapr.errors import UserError

Picture = Callable[..., bytes]
Files = dict[str, bytes | str]


@pytest.fixture
def pictures(picture: Picture) -> list[bytes]:
    return [picture((20 * number, 9, 9), format="PNG") for number in range(12)]


def write_tar(path: Path, files: Files) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            body = content.encode() if isinstance(content, str) else content
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return path


def write_parquet(path: Path, columns: dict[str, list[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def by_split(folder: Path, **table: object) -> dict[str, list[str]]:
    """The captions of each split."""
    return run(folder, **table).captions.groupby("split")["text"].apply(sorted).to_dict()


def test_names_of_photographs_tell_no_split(
    tmp_path: Path, pictures: list[bytes], write_files: Callable[..., Path]
) -> None:
    names = ["test_0.png", "training-shoes.png", "val.png"]
    write_files(tmp_path / "flat", dict(zip(names, pictures, strict=False)))
    (tmp_path / "captions_val2017.csv").write_text("image,caption\n" + "".join(f"{name},a dog\n" for name in names))
    table = {"images": str(tmp_path / "flat"), "captions": [str(tmp_path / "captions_val2017.csv")]}
    assert by_split(tmp_path / "out", **table, splits="seeded", validation=0.4) == {
        "train": ["a dog"] * 2,
        "validation": ["a dog"],
    }
    with pytest.raises(UserError, match="neither a column nor the names of files and folders give splits"):
        run(tmp_path / "out", **table, splits="given")


@pytest.mark.parametrize("order", [1, -1])
def test_the_image_of_a_sample_does_not_depend_on_the_order(tmp_path: Path, pictures: list[bytes], order: int) -> None:
    files: Files = {}
    for number in range(3):
        files |= {f"s{number}.left.png": pictures[number], f"s{number}.png": pictures[3 + number]}
        files |= {f"s{number}.txt": f"plain {number}", f"s{number}.left.txt": "left"}
    write_tar(tmp_path / "in/0.tar", dict(list(files.items())[::order]))
    table = {"images": str(tmp_path / "in"), "splits": "seeded", "validation": 0.4}
    assert run(tmp_path / "out", **table).images["path"].tolist() == [f"0.tar/s{number}.png" for number in range(3)]
    unused = {
        (f"0.tar/s{n}.left.{end}", "not used: the image of this sample is 'png'")
        for n in range(3)
        for end in ("png", "txt")
    }
    assert rejected(tmp_path / "out") == unused
    left = run(tmp_path / "out", **table, columns={"image": "left.png", "caption": "left.txt"})
    assert left.images["path"].tolist() == [f"0.tar/s{number}.left.png" for number in range(3)]
    assert left.captions["text"].tolist() == ["left"] * 3
    assert len(rejected(tmp_path / "out")) == 6


@pytest.mark.parametrize(
    ("files", "columns", "message"),
    [
        (
            ("v1.0.png", "v1.1.png", "v1.0.txt"),
            {},
            r"the sample '0.tar/v1' has 2 pictures, 0.png, 1.png; name one with",
        ),
        (("a.png", "a.jpg", "a.txt"), {}, r"the sample '0.tar/a' has 2 pictures"),
        (("a.png", "a.txt"), {"image": "left.png"}, r"has no column 'left.png' .*; there are png, txt"),
        (("a.png", "a.txt"), {"caption": "alt"}, r"has no column 'alt' .*; there are image, png, txt"),
        (("a.png", "a.txt"), {"language": "lang"}, r"data.table.columns.language: .*no column 'lang'"),
        (("a.png",), {}, r"no column 'txt' or 'caption'"),
        (("a.txt",), {}, r"1 items are left out, the first is '0.tar/a': sample without an image"),
        (("a.png", "a.json"), {}, r"the first is '0.tar/a': captions cannot be read"),
    ],
)
def test_a_sample_that_does_not_tell_is_one_line(
    tmp_path: Path, pictures: list[bytes], files: tuple[str, ...], columns: dict[str, str], message: str
) -> None:
    write_tar(tmp_path / "0.tar", {name: pictures[at] if "txt" not in name else "x" for at, name in enumerate(files)})
    with pytest.raises(UserError, match=message) as error:
        run(tmp_path / "out", images=str(tmp_path / "0.tar"), columns=columns)
    assert "\n" not in str(error.value)


def test_a_sidecar_may_be_a_list_and_two_captions_are_said(tmp_path: Path, pictures: list[bytes]) -> None:
    files: Files = {}
    for number in range(3):
        files |= {f"{number}.png": pictures[number], f"{number}.json": json.dumps([f"a {number}", "b"])}
    files |= {"2.json": json.dumps({"caption": "x", "text": "y"}), "2.txt": "other"}
    write_tar(tmp_path / "in/0.tar", files)
    manifest = run(tmp_path / "out", images=str(tmp_path / "in"), splits="seeded", validation=0.4)
    assert manifest.captions["text"].tolist() == ["a 0", "b", "a 1", "b", "other"]
    assert rejected(tmp_path / "out") == {("0.tar/2.json", "not used: its caption is not that of the .txt file")}


def test_files_as_img2dataset_and_kohya_write_them(
    tmp_path: Path, pictures: list[bytes], write_files: Callable[..., Path]
) -> None:
    files: Files = {"00000_stats.json": "{}", "00000/v1.0.png": pictures[9], "00000/lonely.png": pictures[8]}
    files["00000/v1.0.txt"] = "dotted"
    for number in range(3):
        files |= {f"00000/{number:09d}.png": pictures[number], f"00000/{number:09d}.txt": f"a {number}\n\nb\n"}
        files[f"00000/{number:09d}.json"] = json.dumps({"caption": [f"a {number}", "b"], "key": number})
    write_files(tmp_path / "in", files)
    write_parquet(tmp_path / "in/00000.parquet", {"url": ["x"], "caption": ["x"]})
    manifest = run(tmp_path / "out", images=str(tmp_path / "in"), splits="seeded", validation=0.4)
    assert manifest.captions["text"].tolist() == ["a 0", "b", "a 1", "b", "a 2", "b", "dotted"]
    assert rejected(tmp_path / "out") == {
        ("00000_stats.json", "not an image file"),
        ("00000.parquet", "not used: the captions are in other files"),
        ("00000/lonely.png", "image without a caption"),
    }


def test_pictures_in_a_parquet_column_of_any_name(tmp_path: Path, pictures: list[bytes]) -> None:
    columns: dict[str, list[object]] = {"jpg": list(pictures), "image": ["x"] * 12}
    columns |= {f"caption_{k}": [f"{n} of {k}" for n in range(12)] for k in range(2)}
    write_parquet(tmp_path / "in/0.parquet", columns)
    table = {"images": str(tmp_path / "in"), "splits": "seeded"}
    names = {"image": "jpg", "caption": ["caption_0", "caption_1"]}
    manifest = run(tmp_path / "out", **table, columns=names)
    assert manifest.images["path"].iloc[3] == "0.parquet/jpg/000003"
    assert manifest.captions["text"].iloc[:3].tolist() == ["0 of 0", "0 of 1", "1 of 0"]
    hint = r"did you mean data.table.columns.caption: \[caption_0, caption_1\]\?"
    with pytest.raises(UserError, match=hint):
        run(tmp_path / "out", **table, columns={"image": "jpg"})
    with pytest.raises(UserError, match=r"columns.caption.1: the table has no column 'gone'"):
        run(tmp_path / "out", **table, columns={"image": "jpg", "caption": ["caption_0", "gone"]})


def test_a_copy_gives_its_captions_to_the_first(tmp_path: Path, pictures: list[bytes]) -> None:
    """One caption a row: the picture is repeated, and no caption is lost."""
    rows = {"image": [pictures[n // 2] for n in range(6)], "caption": ["a", "b", "c", "c", "e", "f"]}
    write_parquet(tmp_path / "in/0.parquet", rows)
    manifest = run(tmp_path / "out", images=str(tmp_path / "in"), splits="seeded", validation=0.4)
    assert manifest.captions["text"].tolist() == ["a", "b", "c", "e", "f"]
    same = {(f"0.parquet/00000{n}", f"copy of an image: 0.parquet/00000{n - 1}") for n in (1, 3, 5)}
    assert rejected(tmp_path / "out") == {*same, ("0.parquet/000003#0", "the same caption of the same image")}


def test_a_zip_with_metadata_and_backslashes(tmp_path: Path, pictures: list[bytes]) -> None:
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as packed:
        for number in range(3):
            member = zipfile.ZipInfo("x")
            member.filename = f"photos\\{number}.png"
            packed.writestr(member, pictures[number])
        rows = [json.dumps({"file_name": f"{number}.png", "text": f"a {number}"}) + "\n" for number in range(3)]
        packed.writestr("photos/metadata.jsonl", "".join(rows))
        packed.writestr("0.tar", b"")
    manifest = run(tmp_path / "out", images=str(tmp_path / "in.zip"), splits="seeded", validation=0.4)
    assert captions_of(manifest)[0][:4] == ("photos/0.png#0", "photos/0.png", "en", "a 0")
    assert rejected(tmp_path / "out") == {("0.tar", "not used: the captions are in other files")}


def test_unicode_forms_of_a_name_are_one_name(
    tmp_path: Path, pictures: list[bytes], write_files: Callable[..., Path]
) -> None:
    names = [f"café_{number}.png" for number in range(3)]
    disk = [unicodedata.normalize("NFD", name) for name in names]
    write_files(tmp_path / "in", dict(zip(disk, pictures, strict=False)))
    (tmp_path / "t.csv").write_text("image,caption\n" + "".join(f"{name},x\n" for name in names), encoding="utf-8")
    table = {"images": str(tmp_path / "in"), "captions": str(tmp_path / "t.csv"), "splits": "seeded"}
    assert run(tmp_path / "out", **table, validation=0.4).images["path"].tolist() == disk
    (tmp_path / "in" / unicodedata.normalize("NFC", names[0])).write_bytes(pictures[5])
    manifest = run(tmp_path / "out", **table, validation=0.4)
    assert manifest.images["path"].tolist() == [*disk[1:], names[0]]


@pytest.mark.parametrize(
    ("files", "captions", "table", "message"),
    [
        ({"a.png": "", "outputs.txt": "x"}, None, {}, "no captions beside the images, but 'outputs.txt'"),
        ({"sub/a.png": ""}, "image,caption\na.png,x\n", {}, "the first is 'a.png', and there is 'sub/a.png'"),
        ({"notes.txt": ""}, "image,caption\na.png,x\n", {}, "the first is 'a.png', and there is 'notes.txt'"),
        ({"a.png": ""}, "image,caption\n,x\n", {}, "the first is 't.csv row 1': row without an image"),
        ({"a.png": ""}, "image,caption\na.png,x\n", {"columns": {"language": "lang"}}, "no column 'lang'"),
        ({"a.png": ""}, "image,caption,split\na.png,x,test\n", {"test": 0.2}, "data.table.test has no effect"),
        ({"a.png": ""}, "image,caption,language\na.png,x,zh\n", {"language": "ja"}, "table.language has no effect"),
        ({"t/a.png": "", "train/b.png": ""}, "image,caption\nt/a.png,x\ntrain/b.png,x\n", {}, "but 't' has none"),
    ],
)
def test_what_does_not_fit_is_one_line(
    tmp_path: Path,
    write_files: Callable[..., Path],
    files: Files,
    captions: str | None,
    table: dict[str, object],
    message: str,
) -> None:
    write_files(tmp_path / "in", files)
    if captions:
        (tmp_path / "t.csv").write_text(captions)
    given = {"images": str(tmp_path / "in"), "captions": captions and str(tmp_path / "t.csv"), **table}
    with pytest.raises(UserError, match=message) as error:
        run(tmp_path / "out", **given)
    assert "\n" not in str(error.value)


def test_a_column_wins_over_names(tmp_path: Path, pictures: list[bytes], write_files: Callable[..., Path]) -> None:
    """Names that do not tell are no error then."""
    write_files(tmp_path / "in", {f"{number}.png": pictures[number] for number in range(2)})
    write_files(
        tmp_path,
        {"train.csv": "image,caption,split\n0.png,a,val\n", "extra.csv": "image,caption,split\n1.png,b,train\n"},
    )
    files = [str(tmp_path / name) for name in ("train.csv", "extra.csv")]
    assert by_split(tmp_path / "out", images=str(tmp_path / "in"), captions=files) == {
        "train": ["b"],
        "validation": ["a"],
    }
    for name, number, split in (("train", 0, "val"), ("extra", 1, "train")):
        entry = {"id": number, "file_name": f"{number}.png", "split": split}
        content = {"images": [entry], "annotations": [{"image_id": number, "caption": name}]}
        write_files(tmp_path, {f"{name}.json": json.dumps(content)})
    files = [str(tmp_path / name) for name in ("train.json", "extra.json")]
    manifest = by_split(tmp_path / "out", images=str(tmp_path / "in"), captions=files)
    assert manifest == {"train": ["extra"], "validation": ["train"]}


def test_captions_in_two_files(tmp_path: Path, pictures: list[bytes], write_files: Callable[..., Path]) -> None:
    write_files(tmp_path / "in", {f"{number}.png": pictures[number] for number in range(3)})
    one = "image,caption\n0.png,a\n0.png,a\n1.png,b\n2.png,c\n"
    write_files(tmp_path, {"one.csv": one, "two.csv": "image,caption\n0.png,a\n1.png,new\n"})
    files = [str(tmp_path / name) for name in ("one.csv", "two.csv")]
    manifest = run(tmp_path / "out", images=str(tmp_path / "in"), captions=files, splits="seeded", validation=0.4)
    assert manifest.captions["text"].tolist() == ["a", "a", "b", "new", "c"]
    assert rejected(tmp_path / "out") == {("two.csv row 1", f"the same caption as in {files[0]}")}
