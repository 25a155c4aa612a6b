from hypothesis import given
from hypothesis import strategies as st

from vitcapr.report.figures.layout import shorten, text_width, wrap

letters = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30)


@given(st.lists(letters, max_size=12), st.floats(20, 150))
def test_every_line_fits_and_no_letter_is_lost(words, width):
    lines = wrap(" ".join(words), width, 7)
    assert all(text_width(line, 7) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(words)


@given(letters, st.floats(20, 150))
def test_shortened_text_fits(text, width):
    short = shorten(text, width, 8)
    assert text_width(short, 8) <= width
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


def test_lines_are_as_full_as_they_can_be():
    width = text_width("one two", 7)
    assert wrap("one two three", width, 7) == ["one two", "three"]
    assert wrap("one two three", width - 0.1, 7) == ["one", "two", "three"]


def test_a_name_that_is_too_wide_is_cut_at_its_joints():
    assert wrap("attention/beam", text_width("attention/be", 7), 7) == ["attention/", "beam"]
    assert wrap("attention", text_width("atte", 7), 7)[0] == "atte"


def test_nothing_is_no_lines():
    assert wrap(" ", 50, 7) == []
