import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from vitcapr.report.figures.attention import attended_words, upsample


def naive_bilinear(weights, width, height):
    """Each pixel centre between the four nearest patch centres, outside them the nearest patch."""
    rows, columns = weights.shape
    out = np.zeros((height, width))
    for y in range(height):
        for x in range(width):
            v = min(max((y + 0.5) * rows / height - 0.5, 0), rows - 1)
            u = min(max((x + 0.5) * columns / width - 0.5, 0), columns - 1)
            top, left = int(v), int(u)
            bottom, right = min(top + 1, rows - 1), min(left + 1, columns - 1)
            a, b = v - top, u - left
            out[y, x] = (1 - a) * ((1 - b) * weights[top, left] + b * weights[top, right]) + a * (
                (1 - b) * weights[bottom, left] + b * weights[bottom, right]
            )
    return out


@settings(max_examples=25)
@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.floats(0, 1, width=32)),
    st.integers(5, 17),
    st.integers(5, 17),
)
def test_upsampling_is_bilinear_between_patch_centres(weights, width, height):
    assert upsample(weights, width, height) == pytest.approx(naive_bilinear(weights, width, height), abs=1e-5)


def one_hot(*places, grid=(3, 4)):
    weights = np.zeros((len(places), *grid), np.float16)
    for word, place in enumerate(places):
        weights[(word, *place)] = 1
    return weights


def test_a_panel_for_the_picture_and_one_for_each_word_in_order(picture):
    figure = attended_words(picture, ["a", "dog", "runs"], one_hot((0, 0), (1, 2), (2, 3)))
    assert [axes.get_title() for axes in figure.axes] == ["picture", "a", "dog", "runs", ""]
    assert len(figure.axes[0].images) == 1
    heat = np.asarray(figure.axes[2].images[1].get_array())
    y, x = np.unravel_index(heat.argmax(), heat.shape)
    assert (int(y / heat.shape[0] * 3), int(x / heat.shape[1] * 4)) == (1, 2)


def test_one_stated_scale_for_all_words(picture):
    weights = one_hot((0, 0), (1, 2))
    weights[0] = 1 / 12
    figure = attended_words(picture, ["a", "dog"], weights)
    limits = {axes.images[1].get_clim() for axes in figure.axes[1:3]}
    assert len(limits) == 1
    assert np.asarray(figure.axes[1].images[1].get_array()) == pytest.approx(1, abs=1e-3)
    assert figure.axes[-1].get_xlabel() == "attention, in multiples of an even spread over the 3 x 4 patches"


@pytest.mark.parametrize(("size", "count"), [((400, 20), 6), ((20, 400), 13)])
def test_panels_titles_and_scale_do_not_overlap(size, count):
    words = ["superextraordinarilylongwords" if n % 2 else "dog" for n in range(count)]
    figure = attended_words(Image.new("RGB", size), words, np.full((count, 2, 2), 0.25))
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    boxes += [axes.title.get_window_extent(renderer) for axes in figure.axes[:-1]]
    panels = boxes[: len(figure.axes)]
    for number, box in enumerate(panels):
        assert box.y0 >= 0
        assert box.y1 <= figure.bbox.y1
        assert all(not box.padded(-0.5).overlaps(other.padded(-0.5)) for other in panels[number + 1 :])


def test_the_scale_of_evenly_spread_attention(picture):
    figure = attended_words(picture, ["a"], np.full((1, 3, 4), 1 / 12))
    assert figure.axes[1].images[1].get_clim() == (0, 3)


def test_a_caption_of_no_words_is_the_picture_alone(picture):
    figure = attended_words(picture, [], np.zeros((0, 3, 4)))
    assert [axes.get_title() for axes in figure.axes] == ["picture"]
