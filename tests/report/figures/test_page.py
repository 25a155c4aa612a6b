import logging
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import font_manager

from tests.report.conftest import texts_of
from vitcapr.report.figures import style
from vitcapr.report.figures.page_layout import Word, page, paragraph, wrap
from vitcapr.report.figures.style import NO_FONT, families, text_width

CHINESE = "一只狗在草地上奔跑"
CACHED = (families, style._characters, style._warn)


@pytest.fixture
def without_cjk(monkeypatch):
    """A machine with the fonts of matplotlib alone, and nothing remembered."""
    installed = [font for font in font_manager.fontManager.ttflist if font.name not in style.CJK]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", installed)
    monkeypatch.setattr(style, "PACKAGED", ("no_such_package", "font.otf"))
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


@pytest.mark.usefixtures("without_cjk")
def test_a_font_that_has_the_glyphs_is_taken_by_preference(monkeypatch):
    latin = font_manager.findfont("DejaVu Sans")
    serif = font_manager.findfont("DejaVu Serif")
    entries = [font_manager.FontEntry(fname=serif, name=name) for name in ("SimHei", "WenQuanYi Zen Hei")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist, *entries])
    families.cache_clear()
    assert families() == ("DejaVu Sans", "WenQuanYi Zen Hei")
    assert latin != serif


@pytest.mark.usefixtures("without_cjk")
def test_a_font_in_a_package_is_taken_where_none_is_installed(monkeypatch, tmp_path):
    package = tmp_path / "with_a_font"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('only its files are wanted')")
    shutil.copy(font_manager.findfont("DejaVu Serif"), package / "font.ttf")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(style, "PACKAGED", ("with_a_font", "font.ttf"))
    monkeypatch.setattr(style, "CJK", ("DejaVu Serif",))
    installed = [font for font in font_manager.fontManager.ttflist if font.name != "DejaVu Serif"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", installed)
    assert families() == ("DejaVu Sans", "DejaVu Serif")


@pytest.mark.usefixtures("without_cjk")
def test_text_without_glyphs_is_a_note_and_one_warning_line(caplog, recwarn):
    @style.styled
    def written():
        return page(*(paragraph(text, 3) for text in ("note", "狗", "reference", CHINESE)))

    with caplog.at_level(logging.WARNING):
        figure = written()
    assert texts_of(figure) == ["note", NO_FONT, "reference", NO_FONT]
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]
    (record,) = caplog.records
    assert "install one of Noto Sans CJK SC" in record.getMessage()
    assert "\n" not in record.getMessage()


letters = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30)


def lines(text, points):
    return ["".join(word.text for word in line) for line in wrap([Word(text)], points / 72)]


@settings(max_examples=30)
@given(st.lists(letters, max_size=12), st.floats(20, 150))
def test_every_line_fits_and_no_letter_is_lost(words, width):
    wrapped = lines(" ".join(words), width)
    assert all(text_width(line, 7) <= width + 1e-6 for line in wrapped)
    assert "".join(wrapped).replace(" ", "") == "".join(words)


def test_lines_are_as_full_as_they_can_be():
    width = text_width("one two", 7)
    assert lines("one two three", width + 0.01) == ["one two", "three"]
    assert lines("one two three", width - 0.1) == ["one", "two", "three"]


def test_a_name_that_is_too_wide_is_cut_at_its_joints():
    assert lines("attention/beam", text_width("attention/be", 7)) == ["attention/", "beam"]
    assert lines("attention", text_width("atte", 7) + 0.01)[0] == "atte"
