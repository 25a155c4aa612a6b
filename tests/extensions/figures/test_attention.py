import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from matplotlib.figure import Figure
from matplotlib.image import BboxImage
from PIL import Image

from tests.report.conftest import check_layout, packed, texts_of
from vitcapr.errors import UserError
from vitcapr.extensions.figures.stages.draw_attention import draw_attention
from vitcapr.formats.captions import read_attention
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.report.attended import DUSK, FINE, half_level, lit, smooth
from vitcapr.report.figures.attention import attended_words
from vitcapr.report.figures.examples import Choice, choose_attended


@settings(max_examples=10)
@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.floats(0, 1, width=32)),
    st.integers(5, 17),
    st.integers(5, 17),
)
def test_the_photograph_keeps_its_colours_under_a_light_that_never_hides_it(weights, width, height):
    image = Image.new("RGB", (width, height), (200, 100, 50))
    drawn = np.asarray(lit(image, weights, 1.0)).astype(float) / [200, 100, 50]
    line = (np.ptp(drawn, axis=2) > 0.02) | (drawn.max(axis=2) == 0)  # white and black, around half of the light
    assert drawn[~line].min(initial=1) >= 1 - DUSK - 0.02
    assert drawn[~line].max(initial=0) <= 1.02


def test_light_is_smooth_and_half_of_it_is_inside_the_line():
    weights = np.zeros((4, 6))
    weights[1, 2], weights[3, 5] = 6, 2
    light = smooth(weights)
    assert light[FINE + FINE // 2, 2 * FINE + FINE // 2] == pytest.approx(6, rel=0.05)
    assert (light.min(), light.max() <= 6) == (0, True)
    assert np.abs(np.diff(light, axis=1)).max() < 6 / FINE * 1.6
    level = half_level(light)
    assert light[light >= level].sum() == pytest.approx(light.sum() / 2, rel=0.05)
    assert half_level(np.full((8, 8), 2.0)) == 2


def one_hot(*places, grid=(3, 4)):
    weights = np.zeros((len(places), *grid), np.float16)
    for word, place in enumerate(places):
        weights[(word, *place)] = 1
    return weights


def test_a_panel_for_the_picture_and_one_for_each_word_in_order(picture):
    figure = attended_words(picture, ["a", "dog", "runs"], one_hot((0, 0), (1, 2), (2, 3)))
    assert texts_of(figure) == ["image", "a", "dog", "runs"]
    assert np.array_equal(panels(figure)[0], picture)
    assert hottest(panels(figure)[2], picture) == (1, 2)


def panels(figure):
    return [np.asarray(image.get_array()) for image in packed(figure, BboxImage)]


def hottest(panel, picture):
    """The patch whose colour is the furthest from that of no attention."""
    enlarged = picture.resize(panel.shape[1::-1], Image.Resampling.BICUBIC)
    plain = np.asarray(lit(enlarged, np.zeros((3, 4)), 1.0))
    change = np.abs(panel - plain.astype(float)).sum(axis=2)
    y, x = np.unravel_index(change.argmax(), change.shape)
    return int(y / change.shape[0] * 3), int(x / change.shape[1] * 4)


def test_one_stated_scale_for_all_words(picture):
    weights = one_hot((0, 0), (1, 2))
    weights[0] = 1 / 12
    figure = attended_words(picture, ["a", "dog"], weights)
    (bar,) = figure.axes
    least, most = bar.get_xlim()
    assert least == 0
    # The first word has one times an even spread everywhere.
    panel = panels(figure)[1]
    assert panel.max() == round(255 * (1 - DUSK * (1 - (1 / most) ** 0.5)))
    label = "attention, in multiples of the even share of the 3 x 4 patches; the line encloses half of it"
    assert (most, bar.get_xlabel()) == (12, label)
    (even,) = attended_words(picture, ["a"], np.full((1, 3, 4), 1 / 12)).axes
    assert even.get_xlim() == (0, 3)


@pytest.mark.parametrize(("size", "count"), [((400, 20), 6), ((20, 400), 13)])
def test_nothing_overlaps_or_leaves_the_page(size, count):
    words = ["superextraordinarilylongwords" if n % 2 else "dog" for n in range(count)]
    check_layout(attended_words(Image.new("RGB", size), words, np.full((count, 2, 2), 0.25), "a note " * 40))


def test_a_caption_of_no_words_is_the_picture_alone(picture):
    figure = attended_words(picture, [], np.zeros((0, 3, 4)))
    assert len(panels(figure)) == 1
    assert not figure.axes


@pytest.fixture
def attended(dataset, tmp_path):
    """The inputs of draw_attention. The captions of i0 to i5 are word0 to word1, 2, 3, 4, 5, and 12."""
    Vocabulary.build([f"word{n}" for n in range(13)], min_count=1).write(tmp_path / "vocabulary.json")
    files = {name: tmp_path / f"{name}.json" for name in ("captions", "vocabulary")}
    return {**files, "attention": tmp_path / "attention.npz", "manifest": dataset, "split": "test"}


def test_attention_of_chosen_images_and_words(draw, attended, monkeypatch):
    drawn = []

    def spy(image, words, weights, note):
        drawn.append((words, weights.shape, note))
        return attended_words(image, words, weights, note) if len(words) == 2 else Figure()  # One tells all.

    monkeypatch.setattr("vitcapr.report.figures.attention.attended_words", spy)
    # i6 is an image of training. The first two named have word1 alone; i5 has word12, and no caption has another word.
    chosen = {"attention_first": ["i3.png", "i0", "i6", "i5", "i1"], "attention_words": ["word12", "word1"]}
    names = [f"attention-{number}" for number in range(1, 8)]  # The split has 6 images.
    log = draw(draw_attention, *names, settings={"figures": chosen}, **attended)
    assert [line.split(": ")[0].split()[-1] for line in log.splitlines() if "image i" in line][:3] == ["i3", "i0", "i5"]
    assert len(drawn) == 2 * 6
    assert [(words, shape) for words, shape, _ in drawn[:3]] == [
        (["word1"], (1, 3, 4)),
        (["word1"], (1, 3, 4)),
        (["word1", "word12"], (2, 3, 4)),
    ]
    assert drawn[1][2] == "word0 word1 (score 0.00, log-probability -3.00)"


def test_each_word_has_an_image(dataset, tmp_path):
    """The caption of i4 has the most of the words; after it, i5 alone has one that i4 has not."""
    words, table = ["word5", "word4", "word3", "word9"], read_attention(tmp_path / "attention.npz")
    choice = Choice(2, words=words)
    chosen = choose_attended(read_manifest(dataset), "test", tmp_path / "captions.json", table, choice)
    held = [{*words} & {*one.caption.tokens} for one in chosen]
    assert set.union(*held) == {*words}


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"attention_first": ["i33.png"]}, "data set toy has no image 'i33.png'.* did you mean 'i3.png'?"),
        ({"attention_words": ["Word1"]}, "the vocabulary has no word 'Word1'.* did you mean 'word1'?"),
        ({"attention_words": ["a", "a"]}, "figures.attention_words.*'a' is listed twice"),
    ],
)
def test_an_unknown_image_or_word_is_one_line(draw, attended, chosen, message):
    with pytest.raises(UserError, match=message):
        draw(draw_attention, "attention-1", settings={"figures": chosen}, **attended)


def test_captions_and_attention_of_two_decodings_are_a_mistake(draw, attended, tmp_path):
    entries = json.loads((tmp_path / "captions.json").read_text())
    words = {"tokens": [*entries[5]["tokens"], "more"], "token_log_probs": [-1.0] * 15}
    entries[5] |= words
    entries[5]["candidates"][0] |= words
    (tmp_path / "other.json").write_text(json.dumps(entries))
    with pytest.raises(UserError, match="attention for 13 words for the 14 words of image i5"):
        draw(
            draw_attention,
            "attention-1",
            settings={"figures": {"attention_first": ["i5"]}},
            **{**attended, "captions": tmp_path / "other.json"},
        )
