import matplotlib as mpl
import pytest

from vitcapr.errors import UserError
from vitcapr.progress import Reporter
from vitcapr.report.figures.style import new_figure, save_figure, save_pictures, series, styled


@styled
def simple():
    figure = new_figure(2, 2)
    axes = figure.subplots()
    axes.plot([1, 2, 3], label="a line")
    axes.set_xlabel("costs $5 and $6")
    axes.legend()
    return figure


def saved(path):
    """The bytes of the figure, drawn again and written."""
    save_figure(simple(), path)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["other.png", "f.jpg"])
def test_a_picture_without_a_figure_or_a_format_is_a_mistake(tmp_path, name):
    with Reporter() as report, pytest.raises(UserError, match=r"no figure of this name.*name it f, and end it in png"):
        save_pictures({"f": simple()}, [tmp_path / name], report)


def test_the_same_figure_is_the_same_bytes_in_every_format(tmp_path):
    formats = ["png", "pdf", "svg"]
    first, second = ([saved(tmp_path / f"{folder}.{suffix}") for suffix in formats] for folder in ("one", "two"))
    assert first == second
    assert [content[:4] for content in first] == [b"\x89PNG", b"%PDF", b"<?xm"]
    assert sorted(path.name for path in tmp_path.glob("one.*")) == ["one.pdf", "one.png", "one.svg"]
    _, pdf, svg = first
    assert b"CreationDate" not in pdf
    assert b"dc:date" not in svg
    assert b"/Type3" not in pdf  # Printers and editors accept the embedded fonts.
    assert b"/CIDFontType2" in pdf


def test_the_users_settings_neither_matter_nor_change(tmp_path):
    plain = saved(tmp_path / "plain.png")
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9}):
        changed = saved(tmp_path / "changed.png")
        assert mpl.rcParams["font.size"] == 30
    assert changed == plain


def test_colour_and_marker_together_do_not_repeat_soon():
    looks = [tuple(series(number).values()) for number in range(49)]
    assert len(set(looks)) == 49
