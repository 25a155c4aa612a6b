"""What cleaning removes, what it keeps, and that it counts both."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.text import cleaning
from vitcapr.text.cleaning import TITLE_MARKS, Cleaner, clean, is_symbol


@pytest.mark.parametrize(
    ("text", "language", "cleaned", "fillers"),
    [
        ("A man , a dog ; and 3 cats !", "en", "A man a dog and 3 cats", 0),
        ("Wow ! Oh, the dog's T-shirt - wow", "en", "the dog's T-shirt", 3),
        ("The wowed owl said ehm", "en", "The wowed owl said ehm", 0),
        ("reading <Emma> , quietly", "en", "reading <Emma> quietly", 0),
        ("哇，一个 男人 在看《三体》！", "zh", "一个男人在看《三体》", 1),
        ("他穿着 New York T恤 。", "zh", "他穿着New York T恤", 0),
        ("呃一只狗啊，一只猫呀", "zh", "一只狗一只猫", 3),
        ("一只哈士奇在呼呀叫", "zh", "一只哈士奇在呼呀叫", 0),
        ("a\u200b\tb\n", "en", "a b", 0),
        ("！？ 。", "zh", "", 0),
    ],
)
def test_by_hand(text: str, language: str, cleaned: str, fillers: int) -> None:
    assert clean(text, language) == (cleaned, fillers)


@given(st.text(max_size=60), st.sampled_from(["en", "zh"]))
def test_what_is_left_has_no_symbols_but_those_that_are_kept(text: str, language: str) -> None:
    cleaned, _ = clean(text, language)
    assert cleaned == " ".join(cleaned.split())
    kept = {character for character in cleaned if is_symbol(character)}
    assert kept <= {*TITLE_MARKS, "'", "’", "-"}
    assert len(cleaned) <= len(text)


def test_counts() -> None:
    cleaner = Cleaner()
    cleaner.clean("Wow, a <dog>!", "en")
    cleaner.clean("!!", "en")
    cleaner.clean("一 只。", "zh")
    assert cleaner.removed["en"] == {
        "captions": 2,
        "emptied": 1,
        "characters": 15,
        "kept": 7,
        "symbols": 6,
        "spaces": 2,
        "fillers": 1,
        "title_marks": 2,
    }
    assert cleaner.removed["zh"]["kept"] == 2


def test_the_examples() -> None:
    assert doctest.testmod(cleaning).failed == 0
