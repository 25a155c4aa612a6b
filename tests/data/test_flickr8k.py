from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitcapr.data.collect import Listing
from vitcapr.data.flickr8k import SIZES, list_images, random_splits
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.data_photographs import data_photographs


def listed(files: list[str], text: Path, splits: str = "random") -> Listing:
    return list_images(None, files, text=str(text), splits=splits)


@pytest.fixture
def photographs(picture) -> dict[str, bytes]:
    whole = picture()
    return {
        "a.jpg": whole,
        "b.jpg": picture((1, 2, 3), size=(3, 9)),
        "bomb.jpg": picture(0, size=(10_001, 10_000), format="PNG"),
        "c.jpg": picture((9, 9, 9)),
        "cut.jpg": whole[: len(whole) // 2],
        "d.jpg": picture((7, 7, 7)),
        "html.jpg": b"<!DOCTYPE html><html>gone</html>",
        "mute.jpg": picture((8, 8, 8)),
        "silent.jpg": picture((5, 5, 5)),
        "zero.jpg": b"",
        "readme.txt": b"no picture",
    }


TOKENS = "\n".join(
    [
        "zero.jpg#0\tnothing",
        "b.jpg#0\tA second picture .",
        "a.jpg#0\tA first  picture , it is\u2028red .",
        "a.jpg#1\t ",
        "a.jpg#2\tThe red one .\r",
        "a.jpg#0\tSaid twice .",
        "a.jpg.1#0\tBelongs to no picture .",
        "absent.jpg#0\tA picture that is listed and lost .",
        "b.jpg#1 no tab here",
        "",
        "bomb.jpg#0\tToo large .",
        "c.jpg#0\tC .",
        "cut.jpg#0\tCut .",
        "d.jpg#0\tD .",
        "html.jpg#0\tHtml .",
        "mute.jpg#0\t",
        "",
    ]
)
TEXT = {
    "Flickr8k.token.txt": TOKENS,
    "Flickr_8k.trainImages.txt": "b.jpg\na.jpg\nabsent.jpg\nzero.jpg\n",
    "Flickr_8k.devImages.txt": "c.jpg\r\n",
    "Flickr_8k.testImages.txt": "html.jpg\ncut.jpg\nbomb.jpg",
    "readme.txt": "read me",
}
REJECTED = """\
item,reason
Flickr8k.token.txt:9,not a line 'image#number<tab>caption'
a.jpg#1,empty caption
a.jpg.1#0,caption without an image
absent.jpg,no such file
absent.jpg#0,caption of an image left out
bomb.jpg,"claims 10001 x 10000 pixels, more than 100000000"
bomb.jpg#0,caption of an image left out
cut.jpg,CUT
cut.jpg#0,caption of an image left out
html.jpg,"a web page, not an image"
html.jpg#0,caption of an image left out
mute.jpg,image without a caption
mute.jpg#0,empty caption
silent.jpg,image without a caption
zero.jpg,empty file
zero.jpg#0,caption of an image left out
"""


def run(output_dir: Path, images: Path, text: Path) -> Path:
    options = {"images": str(images), "text": str(text)}
    settings = {"flickr8k": options, "max_rejected": 1}
    run_stage(data_photographs, settings=settings, folder=output_dir)
    return output_dir / "manifest.json"


@pytest.fixture
def folders(tmp_path, write_files, photographs):
    return write_files(tmp_path / "Flicker8k_Dataset", photographs), write_files(tmp_path / "Flickr8k_text", TEXT)


def test_dirt_is_left_out_and_listed_and_the_rest_is_there_in_order(tmp_path, folders):
    manifest = read_manifest(run(tmp_path / "out", *folders))
    rejected = (tmp_path / "out" / "rejected.csv").read_text().splitlines()
    cut = next(line for line in rejected if line.startswith("cut.jpg,"))
    assert cut.startswith(("cut.jpg,damaged: ", 'cut.jpg,"damaged: ')), "Pillow's own words follow"
    assert "\n".join(rejected).replace(cut, "cut.jpg,CUT") + "\n" == REJECTED

    assert manifest.image_root == folders[0]
    columns = ["image_id", "path", "split", "width", "height"]
    assert manifest.images[columns].to_numpy().tolist() == [
        ["a.jpg", "a.jpg", "train", 6, 4],
        ["b.jpg", "b.jpg", "train", 3, 9],
        ["c.jpg", "c.jpg", "validation", 6, 4],
        ["d.jpg", "d.jpg", "none", 6, 4],
    ]
    assert manifest.captions.drop(columns="image_row").to_numpy().tolist() == [
        ["a.jpg#0", "a.jpg", "en", "A first picture , it is red .", "train"],
        ["a.jpg#2", "a.jpg", "en", "The red one .", "train"],
        ["a.jpg#3", "a.jpg", "en", "Said twice .", "train"],
        ["b.jpg#0", "b.jpg", "en", "A second picture .", "train"],
        ["c.jpg#0", "c.jpg", "en", "C .", "validation"],
        ["d.jpg#0", "d.jpg", "en", "D .", "none"],
    ]


def test_kaggle_captions_count_again_and_may_hold_commas(tmp_path, write_files):
    text = write_files(
        tmp_path,
        {
            "captions.txt": '\ufeffimage,caption\r\nb.jpg,"A dog , running ."\r\na.jpg,A cat .\r\n'
            'b.jpg,"He said ""no"" ."\r\n\r\nb.jpg,A dog, unquoted .\r\n,lost\r\nalone\r\n'
        },
    )
    listing = listed(["Images/b.jpg", "Images/a.jpg"], text / "captions.txt")
    assert listing.captions[["caption_id", "text", "image_row"]].values.tolist() == [
        ["b.jpg#0", "A dog , running .", 1],
        ["a.jpg#0", "A cat .", 0],
        ["b.jpg#1", 'He said "no" .', 1],
        ["#0", "lost", -1],
    ]
    assert listing.images[["image_id", "path"]].values.tolist() == [
        ["a.jpg", "Images/a.jpg"],
        ["b.jpg", "Images/b.jpg"],
    ]
    assert listing.rejected == [
        ("captions.txt row 4", "more cells than columns: a caption with the separator needs quotation marks"),
        ("captions.txt row 6", "fewer cells than columns: 1, separated by a comma"),
    ]


def test_official_splits_need_their_lists(tmp_path, write_files):
    text = write_files(tmp_path, {"captions.txt": "image,caption\na.jpg,A .\n", "Flickr_8k.devImages.txt": "a.jpg"})
    message = (
        r"data\.flickr8k\.splits: official needs Flickr_8k\.trainImages\.txt, Flickr_8k\.testImages\.txt beside"
        r".*set data\.flickr8k\.splits: random"
    )
    with pytest.raises(UserError, match=message):
        listed(["a.jpg"], text / "captions.txt", "official")


@settings(max_examples=50)
@given(st.integers(4, 400), st.data())
def test_losing_an_image_moves_at_most_one_other_across_each_border(number, data):
    names = [f"{i}.jpg" for i in range(number)]
    lost = data.draw(st.sampled_from(names))
    before, after = (random_splits(n, SIZES) for n in (names, [name for name in names if name != lost]))
    moved = [name for name in names if name != lost and before.get(name) != after.get(name)]
    assert len(moved) <= 3


@pytest.mark.parametrize(
    ("number", "sizes"),
    [(3, (3, 0, 0)), (8, (6, 1, 1)), (16, (12, 2, 2)), (100, (76, 12, 12)), (8091, (6000, 1000, 1000))],
)
def test_random_splits_are_the_official_ones_or_as_many_as_an_eighth(number, sizes):
    names = [f"{i}.jpg" for i in range(number)]
    split_of = random_splits(names, SIZES)
    assert tuple(list(split_of.values()).count(split) for split in ("train", "validation", "test")) == sizes
    assert random_splits(reversed(names), SIZES) == split_of


def test_of_two_files_of_one_name_the_shallower_counts(tmp_path, write_files):
    text = write_files(tmp_path, {"captions.txt": "image,caption\na.jpg,A .\n"})
    files = ["backup/2/a.jpg", "b/a.jpg", "c/a.jpg"]
    assert listed(files, text).images["path"].tolist() == ["b/a.jpg"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": ""}, r"data\.flickr8k\.images is not set"),
        ({"text": ""}, r"data\.flickr8k\.text is not set"),
        ({"images": "gone"}, r"data\.flickr8k\.images: no such folder or file \(gone\).*Flicker8k_Dataset"),
        ({"text": "gone"}, r"data\.flickr8k\.text: no such file or folder \(gone\).*Flickr8k_text"),
        ({"text": "empty"}, r"data\.flickr8k\.text: neither Flickr8k\.token\.txt nor captions\.txt is there"),
        ({"text": "empty/other.txt"}, r"no column 'image_name' or 'image' \(empty/other\.txt, separated by a comma\)"),
        ({"text": "data.zip"}, r"data\.flickr8k\.text: cannot be read: .*; name the folder Flickr8k_text"),
        ({"images": "bare"}, r"data\.flickr8k\.images: none of the [0-9]+ listed photographs was found"),
    ],
)
def test_a_wrong_path_is_one_line(tmp_path, monkeypatch, folders, write_files, change, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.zip").write_bytes(b"PK\x03\x04\xff\xfe")
    write_files(tmp_path, {"empty/other.txt": "hello\n", "bare/readme.txt": ""})
    options = {"images": str(folders[0]), "text": str(folders[1]), **change}
    with pytest.raises(UserError, match=message):
        run(tmp_path / "out", **options)


@pytest.mark.data
def test_the_real_flickr8k(tmp_path, real_data):
    """Hodosh et al. 2013: 6,000 / 1,000 / 1,000 images and five captions each; the files hold 91 images more."""
    corpus = real_data / "flickr8k"
    options = {"images": str(corpus / "Flicker8k_Dataset"), "text": str(corpus / "Flickr8k_text")}
    settings = {"flickr8k": options}
    run_stage(data_photographs, settings=settings, folder=tmp_path)
    manifest = read_manifest(tmp_path / "manifest.json")
    assert manifest.images["split"].value_counts().to_dict() == {
        "train": 6000,
        "validation": 1000,
        "test": 1000,
        "none": 91,
    }
    assert set(manifest.captions.groupby("image_id").size()) == {5}
    assert manifest.images["image_id"].is_monotonic_increasing
    assert (tmp_path / "rejected.csv").read_text() == (
        "item,reason\n"
        "2258277193_586949ec62.jpg#1,caption without an image\n"
        "2258277193_586949ec62.jpg#2,caption without an image\n"
        "2258277193_586949ec62.jpg#3,caption without an image\n"
        "2258277193_586949ec62.jpg#4,caption without an image\n"
        "2258277193_586949ec62.jpg.1#0,caption without an image\n"
    )


def test_lines_that_end_with_carriage_returns_are_lines(tmp_path, write_files):
    text = write_files(tmp_path, {"captions.token": "a.jpg#0\tA dog .\rb.jpg#0\tA cat .\r"})
    listing = listed(["a.jpg", "b.jpg"], text / "captions.token")
    assert listing.captions[["image_row", "text"]].values.tolist() == [[0, "A dog ."], [1, "A cat ."]]
    text = write_files(tmp_path, {"captions.token": "a.jpg#0\tA dog .\rb.jpg#0\tA cat .\nb.jpg#1\tA cow .\r\n"})
    listing = listed(["a.jpg", "b.jpg"], text / "captions.token")
    assert listing.captions[["caption_id", "text"]].values.tolist() == [["b.jpg#1", "A cow ."]]
    assert listing.rejected == [("captions.token:1", "a carriage return inside the line")]
