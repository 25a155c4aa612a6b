"""The user's photographs and captions, from every form of table, and everything that can be wrong with them."""

import csv
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vitcapr.config.data import TableConfig
from vitcapr.config.reading import parse
from vitcapr.data.images import ImageSource
from vitcapr.data.rows import Columns, read_rows
from vitcapr.data.rows import captions_of as split_captions
from vitcapr.data.table import make_splits
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.progress import Reporter
from vitcapr.stages.data_photographs import PhotographsSettings, data_photographs

NAMES = ("a.png", "b.png", "sub/c.png")
ROWS = [
    {"image": "a.png", "caption": "a dog, red", "language": "", "split": "train"},
    {"image": "./b.png", "caption": "一只猫", "language": "zh", "split": "val"},
    {"image": "sub\\c.png", "caption": "a boat", "language": "", "split": "Test"},
    {"image": "a.png", "caption": "again", "language": "", "split": ""},
]
CAPTIONS = [
    ("a.png#0", "a.png", "en", "a dog, red", "train"),
    ("a.png#1", "a.png", "en", "again", "train"),
    ("b.png#0", "b.png", "zh", "一只猫", "validation"),
    ("sub/c.png#0", "sub/c.png", "en", "a boat", "test"),
]


@pytest.fixture
def images(tmp_path: Path, picture: Callable[..., bytes], write_files: Callable[..., Path]) -> Path:
    colours = {name: ((50 * number, 9, 9), "PNG") for number, name in enumerate(NAMES)}
    return write_files(tmp_path / "images", {n: picture(c, format=f) for n, (c, f) in colours.items()})


def run(folder: Path, **table: Any) -> Manifest:
    settings = PhotographsSettings(table=parse(TableConfig, table, "mine.yaml"), max_rejected=1)
    with Reporter() as reporter:
        data_photographs(settings, reporter, folder)
    return read_manifest(folder / "manifest.json")


def rejected(folder: Path) -> set[tuple[str, ...]]:
    with (folder / "rejected.csv").open(newline="") as stream:
        return {tuple(row) for row in list(csv.reader(stream))[1:]}


def captions_of(manifest: Manifest) -> list[tuple[str, ...]]:
    return list(manifest.captions.drop(columns="image_row").itertuples(index=False, name=None))


def write_table(file: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif file.suffix == ".json":
        file.write_text(json.dumps(rows), encoding="utf-8")
    else:
        options = {"delimiter": "\t" if file.suffix == ".tsv" else ",", **options}
        with file.open("w", encoding="utf-8-sig", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0], **options)
            writer.writeheader()
            writer.writerows(rows)
    return file


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".json", ".parquet"])
def test_the_same_rows_from_every_kind_of_table(tmp_path: Path, images: Path, suffix: str) -> None:
    manifest = run(tmp_path / "out", images=str(images), captions=str(write_table(tmp_path / f"t{suffix}", ROWS)))
    assert captions_of(manifest) == CAPTIONS
    assert manifest.images["path"].tolist() == list(NAMES)
    assert rejected(tmp_path / "out") == set()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("first", ["", "sep={}\n", "\ufeffsep={}\r\n"])
def test_every_separator_under_every_name(tmp_path: Path, suffix: str, separator: str, first: str) -> None:
    lines = [
        "number, image ,caption,other",
        "0,a.png,a dog; red|blue\t!,",
        "1,b.png,a cat",
        "2,sub/c.png,a boat,x,,",
        "3",
    ]
    written = [separator.join(f'"{cell}"' if "!" in cell else cell for cell in line.split(",")) for line in lines]
    file = tmp_path / f"t{suffix}"
    file.write_text(first.format(separator) + "\n".join(written))
    columns, out = (
        Columns({"image": ("image",), "caption": ("caption",)}, ("image", "caption")),
        list[tuple[str, str]](),
    )
    rows = [(row.text("image"), row.text("caption")) for row in read_rows(file, columns, out, key="k")]
    assert rows == [("a.png", "a dog; red|blue\t!"), ("b.png", "a cat"), ("sub/c.png", "a boat")]
    name = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}[separator]
    assert out == [(f"{file.name} row 4", f"fewer cells than columns: 1, separated by {name}")]


def test_spaces_after_the_separator(tmp_path: Path, images: Path) -> None:
    (tmp_path / "t.csv").write_text('image, caption, split\na.png, "a dog, red", train\nb.png, a cat, val\n')
    manifest = run(tmp_path / "out", images=str(images), captions=str(tmp_path / "t.csv"))
    assert manifest.captions["text"].tolist() == ["a dog, red", "a cat"]


@pytest.mark.parametrize("options", [{"delimiter": ";"}, {"lineterminator": "\r"}, {"lineterminator": "\n"}])
def test_csv_as_spreadsheets_and_old_macs_write_it(tmp_path: Path, images: Path, options: dict[str, str]) -> None:
    table = write_table(tmp_path / "t.csv", ROWS, **options)
    assert captions_of(run(tmp_path / "out", images=str(images), captions=str(table))) == CAPTIONS


def test_lists_of_captions_and_columns_of_other_names(tmp_path: Path, images: Path) -> None:
    rows = [
        {"Photo": "a.png", "Said": '["one", "two"]', "part": "train"},
        {"Photo": "b.png", "Said": "[no list", "part": "dev"},
    ]
    table = write_table(tmp_path / "t.csv", rows)
    columns = {"image": "Photo", "caption": "Said", "split": "part"}
    manifest = run(tmp_path / "out", images=str(images), captions=str(table), columns=columns)
    assert manifest.captions["text"].tolist() == ["one", "two", "[no list"]
    assert rejected(tmp_path / "out") == {("sub/c.png", "image without a caption")}


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("['a', 'b']", ["a", "b"]),
        ("('a', 'b')", ["a", "b"]),
        ("('a',)", ["a"]),
        ("""["it's" 'a "b"'\n 'c']""", ["it's", 'a "b"', "c"]),
        (
            str(np.array(["long enough to be broken into lines " * 2] * 3)),
            ["long enough to be broken into lines " * 2] * 3,
        ),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ('{"a b","c"}', ["a b", "c"]),
        ("['\\u732b \\'x\\'']", ["猫 'x'"]),
        ('["a", null]', ["a", ""]),
        ("[]", [""]),
        *((text, [text]) for text in ("[sic] a dog", "[a dog]", "[it's a dog]", "(left) a dog", '("Stop" sign)')),
        *(
            (text, [text])
            for text in ("[1] a dog", "{a, b}", "['stop' sign] a dog", "('a')", "a nan bread", "None left")
        ),
    ],
)
def test_a_cell_is_a_caption_or_a_printed_list(cell: str, texts: list[str]) -> None:
    assert split_captions(cell, "here", []) == texts


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        *((text, "the list must be JSON") for text in ("['a', None]", "['a', nan]", "['a', 1]", "[['a'], ['b']]")),
        *(
            (text, "the list must be JSON")
            for text in ("['a dog's tail', 'b']", "['a', 'b", "[b'a']", r"['\N{x}', 'b']")
        ),
        *(
            (text, "a caption is a text or a list of texts")
            for text in ("[1, 2]", '[["a"]]', '["a", 2]', '{"raw": "a"}', True, 1.5, ["a", 1], {"x": "a"})
        ),
        *((text, "no caption: the cell says") for text in ("nan", "None", " NULL", "<NA>", "[nan]", "(None)", "#N/A")),
    ],
)
def test_a_cell_that_is_neither_is_refused(cell: object, reason: str) -> None:
    refused: list[tuple[str, str]] = []
    split_captions(cell, "here", refused)
    assert {place for place, _ in refused} == {"here"}
    assert all(why.startswith(reason) for _, why in refused)


def test_a_list_is_read_in_linear_time() -> None:
    for text in ("['" + "a" * 10**5, "['a'" + " " * 10**5 + "x", "[" + "'a' " * 10**5 + "x", "['" + "\\" * 10**5):
        split_captions(text, "here", [])


def test_items_of_one_name_in_a_tar_are_listed(tmp_path: Path, images: Path) -> None:
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for name in NAMES:
            tar.add(images / name, "./one.png")
            member = tarfile.TarInfo("./one.txt")
            member.size = 5
            tar.addfile(member, io.BytesIO(b"a dog"))
    with pytest.raises(UserError, match="none of 1 images is in the validation split"):
        run(tmp_path / "out", images=str(tmp_path / "0.tar"), splits="seeded")
    with ImageSource(tmp_path) as source:
        out: list[tuple[str, str]] = []
        assert list(source.tars.members("0.tar", out)) == ["one.png", "one.txt"]
        assert out == [(f"0.tar one.{end}", "a second file of this name") for end in ("png", "txt")] * 2
        assert source.read("0.tar/one.png") == (images / NAMES[0]).read_bytes()


COCO = {
    "images": [{"id": 7, "file_name": "a.png", "split": "train"}, {"id": 9, "file_name": "b.png", "split": "val"}],
    "annotations": [{"image_id": 9, "id": 1, "caption": "b"}, {"image_id": 7, "id": 2, "caption": "a"}],
}


def test_captions_in_cocos_form_keep_their_ids(tmp_path: Path, images: Path) -> None:
    images_twice = [*COCO["images"], {"id": 7, "file_name": "sub/c.png"}]
    (tmp_path / "mine.json").write_text(json.dumps({**COCO, "images": images_twice}))
    manifest = run(tmp_path / "out", images=str(images), captions=str(tmp_path / "mine.json"))
    assert captions_of(manifest) == [("2", "7", "en", "a", "train"), ("1", "9", "en", "b", "validation")]
    assert rejected(tmp_path / "out") == {("7", "duplicate image id"), ("sub/c.png", "image without a caption")}
    (tmp_path / "mine.json").write_text(json.dumps({"images": []}))
    with pytest.raises(UserError, match="it has no 'annotations'"):
        run(tmp_path / "out", images=str(images), captions=str(tmp_path / "mine.json"))


def test_cells_without_a_value_say_nothing(tmp_path: Path, images: Path) -> None:
    lines = ["image,caption,language,split", "a.png,a,nan,train", "b.png,b,NULL,val", "sub/c.png,c,zh,none", "NaN,d,,"]
    (tmp_path / "t.csv").write_text("\n".join([*lines, "a.png,None,,", "a.png,again,None,None"]))
    manifest = run(tmp_path / "out", images=str(images), captions=str(tmp_path / "t.csv"))
    assert captions_of(manifest) == [
        ("a.png#0", "a.png", "en", "a", "train"),
        ("a.png#1", "a.png", "en", "again", "train"),
        ("b.png#0", "b.png", "en", "b", "validation"),
        ("sub/c.png#0", "sub/c.png", "zh", "c", "none"),
    ]
    assert rejected(tmp_path / "out") == {
        ("t.csv row 4", "row without an image"),
        ("t.csv row 5", "no caption: the cell says 'None'"),
    }


def test_a_bad_cell_takes_no_other_with_it(tmp_path: Path, images: Path) -> None:
    lines = ["image,c0,c1,is_rejected,split", "a.png,one,nan,false,train", 'b.png,"[""two"", 3]",two b,0,val']
    (tmp_path / "t.csv").write_text("\n".join([*lines, "sub/c.png,c,d,,test", "a.png,no,no,True,train"]))
    columns = {"caption": ["c0", "c1"]}
    manifest = run(tmp_path / "out", images=str(images), captions=str(tmp_path / "t.csv"), columns=columns)
    assert manifest.captions["text"].tolist() == ["one", "two", "two b", "c", "d"]
    assert rejected(tmp_path / "out") == {
        ("t.csv row 1", "no caption: the cell says 'nan'"),
        ("t.csv row 2", "a caption is a text or a list of texts, not 3"),
        ("t.csv row 4", "its file says is_rejected: true"),
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"image": "sub/c.png", ', "line 2 is not a JSON object"),
        ("null", "not a JSON object: None"),
        ("[" * 10**5, "line 2 is not a JSON object"),
    ],
)
def test_an_odd_line_is_left_out(tmp_path: Path, images: Path, line: str, reason: str) -> None:
    rows = [{"image": f"{name}.png", "caption": name, "split": split} for name, split in (("a", "train"), ("b", "val"))]
    lines = [json.dumps(rows[0]), line, json.dumps({**rows[1], "other": float("nan")})]
    (tmp_path / "t.jsonl").write_text("\n".join(lines), encoding="utf-16")
    manifest = run(tmp_path / "out", images=str(images), captions=str(tmp_path / "t.jsonl"))
    assert manifest.captions["text"].tolist() == ["a", "b"]
    assert dict(rejected(tmp_path / "out"))["t.jsonl row 2"].startswith(reason)  # type: ignore[arg-type]


def test_columns_that_nobody_asks_for_are_not_read(tmp_path: Path, images: Path) -> None:
    """A date in the year 50,000 is no Python date."""
    far = pa.array([1_500_000_000_000_000] * 2, pa.timestamp("ms"))
    table = pa.table({"image": ["a.png", "b.png"], "text": ["one", "two"], "split": ["train", "val"], "taken": far})
    pq.write_table(table, tmp_path / "t.parquet")
    manifest = run(tmp_path / "out", images=str(images), captions=str(tmp_path / "t.parquet"))
    assert manifest.captions["text"].tolist() == ["one", "two"]
    columns = {"caption": "taken"}
    with pytest.raises(UserError, match=r"cannot be read after row 0: .*t\.parquet"):
        run(tmp_path / "out", images=str(images), captions=str(tmp_path / "t.parquet"), columns=columns)


def test_everything_that_is_left_out_is_listed(
    tmp_path: Path, images: Path, picture: Callable[..., bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    (images / "copy.png").write_bytes((images / "a.png").read_bytes())
    (images / "torn.png").write_bytes(picture(format="PNG")[:40])
    (images / "notes.txt").write_text("x")
    (tmp_path / "outside.png").write_bytes(picture(format="PNG"))
    lines = [
        *("image,caption,split", "a.png,one,train", "b.png,two,val", "gone.png,x,train", "copy.png,x,train"),
        *("torn.png,x,train", "../outside.png,x,train", "/etc/passwd,x,train", ",x,train", "b.png,,val"),
        *("a.png,with, comma,train", f"{images}/sub/c.png,three,test"),
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    manifest = run(tmp_path / "out", images=str(images), captions=str(tmp_path / "t.csv"))
    assert manifest.images["path"].tolist() == list(NAMES)
    reasons = dict(rejected(tmp_path / "out"))
    assert reasons.pop("torn.png").startswith("not an image")
    assert reasons == {
        "gone.png": "no such file",
        "copy.png": "copy of an image: a.png",
        "notes.txt": "not an image file",
        "b.png#1": "empty caption",
        **dict.fromkeys(("gone.png#0", "torn.png#0"), "caption of an image left out"),
        "t.csv row 6: ../outside.png": "path outside the folder of the images",
        "t.csv row 7: /etc/passwd": "path outside the folder of the images",
        "t.csv row 8": "row without an image",
        "t.csv row 10": "more cells than columns: a caption with the separator needs quotation marks",
    }
    result = capsys.readouterr().err.splitlines()[-1]
    assert result.startswith("result: 3 images (1 train, 1 validation, 1 test); 11 items left out (2 x path outside")
    assert result.endswith("rejected.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,captoin\na.png,x\n", "no column 'caption' or 'captions' or 'text' .*; did you mean 'captoin'?"),
        ("Picture,caption\na.png,x\n", "data.table.columns.image: .*; there are Picture, caption"),
        ("image,caption,split\na.png,x,tset\n", r"unknown split 'tset' \(.*t.csv row 1\); did you mean 'test'?"),
        ("image,caption,split\na.png,x,train\na.png,y,val\n", "'a.png' is in the train split and in the validation"),
        ("image,caption,split\na.png,x,train\n", "none of 1 images is in the validation split"),
        (
            "image,caption\nA.PNG,x\n",
            "none of the 1 listed photographs was found; the first is 'A.PNG', and there is 'a.png'",
        ),
        ("image,caption\na,x\n", "the first is 'a', and there is 'a.png': add the ending to the names in the table"),
        ("image,caption\n", "no photograph with a caption is listed"),
        (b"image,caption\na.png,caf\xe9\n", "data.table.captions: not text in UTF-8: .*; save the table in"),
        (b"\xff\xfei\x00m\x00", "there are im"),
        (b"\xff\xfei\x00m", "not text in UTF-8"),
        (b"", "there are none"),
        ("filepath\ttitle\tx\n", r"t.csv, separated by a tab\); .*; there are filepath, title, x"),
        ("sep=;\nimage\tcaption\n", r"separated by a semicolon\); .*; there are image\\tcaption"),
        ('image,caption\na.png,"a dog\nb.png,a cat\nsub/c.png,a boat\n', "cannot be read after row 0: unexpected end"),
        ('image,caption\na.png,x\na.png,"a dog\nb.png,"a cat"\n', "cannot be read after row 1: .* expected after"),
        ("image,caption,caption\na.png,x,y\n", "two columns 'caption'"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, images: Path, text: str | bytes, message: str) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=message) as error:
        run(tmp_path / "out", images=str(images), captions=str(file))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"no captions beside the images .*; set data.table.captions"),
        ({"captions": "gone.csv"}, r"data.table.captions: no such file .*gone.csv"),
        ({"captions": "captions.xlsx"}, "unknown kind of table"),
        ({"captions": "t.csv", "columns": {"caption": "image"}}, "image and caption are one column, 'image'"),
        ({"captions": "bad.jsonl"}, "line 1 is not a JSON object"),
        ({"captions": "bad.json"}, "'images' is 1, not of type list"),
        ({"captions": "bad.parquet"}, "cannot be read"),
    ],
)
def test_a_mistake_in_the_settings_or_the_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: Path, given: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "t.csv", ROWS)
    (tmp_path / "bad.jsonl").write_text('{"caption": "a", "image": "b"\n{oh\n')
    (tmp_path / "bad.json").write_bytes('{"images": 1}'.encode("utf-16"))
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(UserError, match=message):
        run(tmp_path / "out", images=str(images), **given)


SPLIT_IMAGES = [f"{number}.jpg" for number in range(500)]
SHARES = {"validation": 0.1, "test": 0.2, "seed": 0}


def splits(images: list[str], how: str, given: dict[str, str] | None = None, **changes: float) -> list[str]:
    names = pd.Series(images, dtype="str")
    return make_splits(names, names.map(given or {}), how, **{**SHARES, **changes}).tolist()


def sizes(images: list[str]) -> list[int]:
    return [images.count(split) for split in ("train", "validation", "test")]


def test_a_hash_moves_no_image_when_images_are_added() -> None:
    after = splits(SPLIT_IMAGES, "hash")
    assert after[:400] == splits(SPLIT_IMAGES[:400], "auto")
    # 500 draws at 0.7, 0.1 and 0.2: the standard deviations are 10.2, 6.7 and 8.9.
    assert all(abs(size - expected) < 30 for size, expected in zip(sizes(after), (350, 50, 100), strict=True))
    assert splits(SPLIT_IMAGES, "hash", seed=1) != after


def test_seeded_splits_have_exact_sizes() -> None:
    assert sizes(splits(SPLIT_IMAGES, "seeded")) == [350, 50, 100]


def test_given_splits_are_kept_and_others_are_in_none() -> None:
    given = {"0.jpg": "train", "1.jpg": "validation"}
    assert splits(SPLIT_IMAGES[:3], "auto", given) == ["train", "validation", "none"]
    assert splits(SPLIT_IMAGES, "seeded", given) == splits(SPLIT_IMAGES, "seeded")
    with pytest.raises(UserError, match="neither a column nor the names"):
        splits(SPLIT_IMAGES, "given")
    with pytest.raises(UserError, match="none of 2 images is in the validation split"):
        splits(SPLIT_IMAGES[:2], "seeded")
