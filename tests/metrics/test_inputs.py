import pytest

from vitcapr.errors import UserError
from vitcapr.metrics import inputs
from vitcapr.metrics.inputs import Caption


def test_candidates_are_put_in_the_order_of_the_images() -> None:
    assert inputs.check_candidates({"b": "two", "a": "one"}, ["a", "b"]) == ["one", "two"]


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([("b", "x")], r"1 of 2 images of the split have no caption \(image a\)"),
        ([("a", "x"), ("b", "y"), ("c", "z")], r"not in the split \(image c\)"),
        ([("a", "x"), ("b", " ")], r"empty caption .*\(image b\); set decoding.min_length"),
        ([("a", "x"), ("b", "one\rtwo")], r"line break '\\r' \(image b, caption 'one\\rtwo'\)"),
        ([("a", "x"), ("b", "one\ntwo")], r"line break '\\n' \(image b"),
        ([("a", "x"), ("b", "one\u2028two")], r"line break '\\u2028' \(image b"),
    ],
)
def test_captions_that_cannot_be_scored(results: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        inputs.check_candidates(dict(results), ["a", "b"])


def test_a_caption_of_punctuation_alone_is_named() -> None:
    with pytest.raises(UserError, match=r"no word in it \(image b, caption '...'\)"):
        inputs.check_tokens([Caption("a", "x"), Caption("b", "...")], [["y"], ["z"]], ["x", ""])
    with pytest.raises(UserError, match=r"no reference of an image has a word in it \(image a\)"):
        inputs.check_tokens([Caption("a", "x")], [["", ""]], ["x"])
    inputs.check_tokens([Caption("a", "x")], [["", "y"]], ["x"])
