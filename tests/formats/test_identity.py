import pytest

from vitcapr.errors import UserError
from vitcapr.formats.identity import match_names

CATS_AND_DOGS = ["cats/000.jpg", "dogs/000.jpg"]


@pytest.mark.parametrize(
    ("ids", "names", "expected"),
    [
        (CATS_AND_DOGS, CATS_AND_DOGS[::-1], {name: name for name in CATS_AND_DOGS}),
        (CATS_AND_DOGS, ["cats/000", "dogs/000"], dict(zip(CATS_AND_DOGS, ["cats/000", "dogs/000"], strict=True))),
        (CATS_AND_DOGS, ["/x/cats/000.jpg", "/x/birds/000.jpg"], {"cats/000.jpg": "/x/cats/000.jpg"}),
        (["train/0.jpg", "val/1.jpg"], ["1", "0"], {"train/0.jpg": "0", "val/1.jpg": "1"}),
        (["1.5.jpg", "1.6.jpg"], ["1.5", "1.6"], {"1.5.jpg": "1.5", "1.6.jpg": "1.6"}),
        (["a.jpg", "x/a.jpg"], ["a.jpg"], {"a.jpg": "a.jpg"}),
        (["a.jpg", "x/a.jpg"], ["a", "x/a"], {"a.jpg": "a", "x/a.jpg": "x/a"}),
        (["cats/0.jpg"], ["dogs/0.jpg"], {}),
        (["cats/0.jpg"], ["bobcats/0.jpg"], {}),
        (["./a.jpg"], ["a.jpg"], {"./a.jpg": "a.jpg"}),
    ],
)
def test_the_whole_path_is_the_identity(ids: list[str], names: list[str], expected: dict[str, str]) -> None:
    assert match_names(ids, names) == expected


@pytest.mark.parametrize(
    ("ids", "names", "words"),
    [
        (CATS_AND_DOGS, ["000"], "'000' stands for cats/000.jpg and dogs/000.jpg"),
        (CATS_AND_DOGS, ["000.jpg", "001.jpg"], "'000.jpg' stands for cats/000.jpg and dogs/000.jpg"),
        (["a.jpg", "a.png"], ["a"], "'a' stands for a.jpg and a.png"),
        (["a"], ["a.jpg", "a.png"], "'a' stands for a.jpg and a.png"),
        (["cats/0.jpg"], ["/x/cats/0.jpg", "/y/cats/0.jpg"], "'cats/0.jpg' stands for /x/cats/0.jpg and /y/cats/0.jpg"),
    ],
)
def test_what_is_not_unique_is_refused(ids: list[str], names: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        match_names(ids, names)
