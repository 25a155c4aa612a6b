import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.text.normalise import clean, units_of, words_of

CAPTION = "Two dogs, aged 3, can't fetch the T-shirt_2 of O'Neill!"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (CAPTION, {"non_letters": "space"}, "two dogs aged can t fetch the t shirt of o neill"),
        (CAPTION, {"non_letters": "remove"}, "two dogs aged cant fetch the tshirt of oneill"),
        (CAPTION, {"non_letters": "keep"}, "two dogs , aged 3 , ca n't fetch the t-shirt_2 of o'neill !"),
        ("A man's T-shirt", {"non_letters": "space", "drop_one_letter": True}, "man shirt"),
        ("A man's T-shirt", {"non_letters": "remove", "drop_one_letter": True}, "mans tshirt"),
        ("a b , c", {"non_letters": "keep", "drop_one_letter": True}, ","),  # A sign that is kept is not a letter.
        ("one\ttwo\nthree\u00a0four", {}, "one two three four"),
        ("Ein Café in Łódź, 3 Straßen", {}, "ein café in łódź straßen"),
        ("cafe\u0301", {}, "caf\u00e9"),
        ("एक बिल्ली, 2 कुत्ते \u2764\ufe0f", {}, "एक बिल्ली कुत्ते"),  # Vowels are marks; so is what follows the heart.
        ("两只狗，在草地上。", {"drop_one_letter": True}, "两 只 狗 在 草 地 上"),
        ("", {}, ""),
        ("123 ,.!", {}, ""),
    ],
)
def test_words_by_hand(text, options, words):
    assert words_of(text, **options) == words.split()


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("एक लाल कुत्ता।", "एक लाल कुत्ता"),
        ("ஒரு நாய், 2", "ஒரு நாய் 2"),
        ("หมาสีแดง วิ่ง", "หมาสีแดง วิ่ง"),  # Thai writes no spaces between words.
        ("כֶּלֶב אָדֹם", "כֶּלֶב אָדֹם"),
        ("एक क्\u200dष می\u200cروم", "एक क्ष میروم"),  # Joiners are inside words.
        ("cafe\u0301 it\u00b4s \u2764\ufe0f", "caf\u00e9 it s"),
        ("一个NBA球员,3分!", "一 个 nba 球 员 3 分"),
        ("t-shirt_2", "t shirt 2"),
    ],
)
def test_units_by_hand(text, units):
    assert units_of(text) == units.split()
    if not any(map(str.isdigit, text)):  # A captioner learns no numbers by default.
        assert units_of(text) == words_of(text, non_letters="space")


@given(st.text(), st.sampled_from(["space", "remove"]))
def test_cleaned_text_is_letters_and_spaces_and_cleaning_is_idempotent(text, non_letters):
    cleaned = clean(text, non_letters)
    assert all(unicodedata.category(letter)[0] in "LM" or letter.isspace() for letter in cleaned)
    assert clean(cleaned, non_letters) == cleaned


@given(st.text(), st.sampled_from(["space", "remove", "keep"]), st.booleans())
def test_words_are_neither_empty_nor_spaced(text, non_letters, drop_one_letter):
    words = words_of(text, non_letters=non_letters, drop_one_letter=drop_one_letter)
    assert all(word and len(word.split()) == 1 for word in words)
