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
    assert match_images([name], known).get(name) == place


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
        (TWO, ["val/0000.jpg"], TWO),  # train/0000.jpg is another image.
        (["0000.jpg", "0000.png"], ["0000.jpg"], ["0000.jpg", "0000.png"]),
        (["train/0000.jpg", "/data/train/0000.jpg"], TWO, ["train/0000.jpg", "/data/train/0000.jpg"]),
    ],
)
def test_what_is_not_unique_is_refused_by_the_names_of_both(
    names: list[str], known: list[str], both: list[str]
) -> None:
    with pytest.raises(UserError, match=r"results\.json") as caught:
        match_images(names, known, "results.json")
    assert all(name in str(caught.value) for name in both)
