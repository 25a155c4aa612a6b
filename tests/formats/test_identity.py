"""Names of images that other programs wrote."""

import pytest

from vitcapr.errors import UserError
from vitcapr.formats.identity import match_images

TWO = ["train/0000.jpg", "val/0000.jpg"]


@pytest.mark.parametrize(
    ("name", "known", "place"),
    [
        ("train/0000.jpg", TWO, 0),
        ("val/0000.jpg", TWO, 1),
        ("/data/images/val/0000.jpg", TWO, 1),  # Another root.
        ("./train/0000.jpg", TWO, 0),
        ("train\\0000.jpg", TWO, 0),
        ("val/0000", TWO, 1),
        ("val/0000.png", TWO, 1),
        ("train/0000.jpg", ["0000.jpg", "images/train/0000.jpg"], 1),
        ("0000.jpg", ["train/0000.jpg", "0000.jpg"], 1),  # A whole path.
        ("./0000.jpg", ["train/0000.jpg", "0000.jpg"], 1),
        ("0000.jpg", ["a/0000.png", "b/0000.jpg"], 1),
        ("0000", ["a/0000.jpg"], 0),
        ("val2017/139.jpg", ["coco/139.jpg"], 0),  # Unique on both sides.
        ("v1.2", ["v1.1.jpg", "v1.2.jpg"], 1),  # .2 is not a suffix.
        ("COCO_val2014_000000000139.jpg", ["13", "139"], 1),
        ("139", ["train/000000000139.jpg"], 0),
        ("12.jpg", ["cat_12.jpg", "112.jpg"], None),
        ("dog_000000000012.jpg", ["12"], None),
        ("", ["a.jpg"], None),
    ],
)
def test_a_name_by_hand(name: str, known: list[str], place: int | None) -> None:
    assert match_images([[name]], [known]) == [place]


@pytest.mark.parametrize(
    ("names", "known", "rows"),
    [
        # Ids that are the numbers of other files: a file name with its suffix is a file.
        ([["1.jpg", "3.jpg"]], [["1", "2", "3"], ["2.jpg", "3.jpg", "1.jpg"]], [2, 1]),
        ([["000000000002.jpg"]], [["1", "2"], ["000000000002.jpg", "000000000001.jpg"]], [0]),
        ([["1", "2"], ["000000000002.jpg", "000000000001.jpg"]], [["000000000001.jpg", "000000000002.jpg"]], [1, 0]),
        # Bare numbers: as ids or as files, whichever fits all of them.
        ([["0", "1", "2"]], [["0", "1", "2"], ["1.jpg", "2.jpg", "3.jpg"]], [0, 1, 2]),
        ([["1", "2", "3"]], [["0", "1", "2"], ["1.jpg", "2.jpg", "3.jpg"]], [0, 1, 2]),
        ([["0", "1", "2"], ["1.jpg", "2.jpg", "3.jpg"]], [["3", "1", "2"]], [1, 2, 0]),
        # COCO's own files.
        ([["139", "285"]], [["285", "139"], ["val2017/000000000285.jpg", "val2017/000000000139.jpg"]], [1, 0]),
        # Another folder gives way to the image itself.
        ([TWO], [["val/0000.jpg"]], [None, 0]),
    ],
)
def test_an_image_has_several_names(names: list[list[str]], known: list[list[str]], rows: list[int | None]) -> None:
    assert match_images(names, known) == rows


@pytest.mark.parametrize(
    ("names", "known"),
    [
        ([["1", "2"]], [["0", "1", "2"], ["1.jpg", "2.jpg", "3.jpg"]]),
        ([["0", "1"], ["1.jpg", "0.jpg"]], [["1", "0"]]),
        ([["1.jpg"]], [["1", "2"], ["a/1.jpg", "b/1.jpg"]]),
    ],
)
def test_ids_and_files_that_contradict_each_other_are_refused(names: list[list[str]], known: list[list[str]]) -> None:
    with pytest.raises(UserError, match="may be the image"):
        match_images(names, known)


@pytest.mark.parametrize(
    ("names", "known", "both"),
    [
        (["0000.jpg"], TWO, TWO),
        (["0000"], TWO, TWO),
        (["test/0000.jpg"], TWO, TWO),
        (["a/train/0000.jpg"], ["b/train/0000.jpg", "b/val/0000.jpg"], ["b/train", "b/val"]),
        (["0000"], ["0000.jpg", "0000.png"], ["0000.jpg", "0000.png"]),
        (["0000.jpg"], ["0000.jpg", "1.jpg", "0000.jpg"], ["0000.jpg"]),
        (TWO, ["test/0000.jpg"], TWO),
        (["0000.jpg", "0000.png"], ["0000.jpg"], ["0000.jpg", "0000.png"]),
        (["train/0000.jpg", "/data/train/0000.jpg"], TWO, ["train/0000.jpg", "/data/train/0000.jpg"]),
    ],
)
def test_what_is_not_unique_is_refused_by_the_names_of_both(
    names: list[str], known: list[str], both: list[str]
) -> None:
    with pytest.raises(UserError, match=r"results\.json") as caught:
        match_images([names], [known], "results.json")
    assert all(name in str(caught.value) for name in both)
