import numpy as np
import pytest
from PIL import Image

from tests.report.figures.conftest import check_layout
from vitcapr.formats.embeddings import Embeddings
from vitcapr.report import direction
from vitcapr.report.figures.retrieval import Failure, failures, image_to_text, text_to_image

IMAGES = np.eye(3, dtype=np.float32)
CAPTIONS = np.array([[0.6, 0.8, 0], [0.8, 0, 0.6], [0, 1, 0], [0, 0.96, 0.28]], np.float32)
EMBEDDED = Embeddings(IMAGES, CAPTIONS, np.arange(3), np.arange(4), np.array([0, 1, 1, 2]))
# Image 0 has caption 0 (0.6), caption 1 is nearer (0.8); image 1 has caption 2 (1.0); image 2's own 0.28 comes third.
I2T, T2I = np.array([2, 1, 2]), np.array([2, 3, 1, 2])


def missed_captions(count, seed):
    return failures(direction.text_to_image(EMBEDDED), T2I, count, seed, int, int)


def test_the_nearest_negative_is_shown_beside_the_nearest_positive():
    first, second = failures(direction.image_to_text(EMBEDDED), I2T, 9, 0, "image {}".format, "caption {}".format)
    assert first == Failure("image 0", "caption 1", "caption 0", pytest.approx(0.8), pytest.approx(0.6), 2)
    assert second == Failure("image 2", "caption 1", "caption 3", pytest.approx(0.6), pytest.approx(0.28), 2)


def test_captions_that_fail_find_an_image():
    found = missed_captions(9, 0)
    assert [(case.query, case.wrong, case.true, case.rank) for case in found] == [
        (0, 1, 0, 2),
        (1, 0, 1, 3),
        (3, 1, 2, 2),
    ]


def test_failures_are_drawn_by_seed_in_their_order():
    draws = [[case.query for case in missed_captions(2, seed)] for seed in range(20)]
    assert {tuple(draw) for draw in draws} == {(0, 1), (0, 3), (1, 3)}
    assert [case.query for case in missed_captions(2, 5)] == draws[5]


def texts(figure):
    return [text.get_text() for text in figure.texts if text.get_text()]


def test_a_failed_image_shows_both_captions_with_ranks_and_scores(picture):
    case = Failure(picture, "a wrong caption", "its own", 0.81, -0.04, 1234)
    shown = texts(image_to_text([case], 655, 1000))
    assert shown == [
        "655 of 1,000 images find a wrong caption (✗) before a true one (✓); 1 drawn at random",
        "✗ rank 1, cosine 0.81",
        "a wrong caption",
        "✓ rank 1,234, cosine -0.04",
        "its own",
    ]


def test_a_failed_caption_shows_both_pictures(picture):
    wrong, true = picture, Image.new("RGB", (20, 70), "red")
    figure = text_to_image([Failure("a red thing", wrong, true, 0.5, 0.4, 3)], 1, 9)
    assert texts(figure)[0].endswith("before a true one (✓)")
    assert [axes.images[0].get_array().shape[:2] for axes in figure.axes] == [(40, 60), (70, 20)]


@pytest.mark.parametrize("size", [(400, 20), (20, 400)])
def test_nothing_overlaps_or_leaves_the_page(size):
    long, one, numbers = "word " * 40, Image.new("RGB", size), (-0.88, -0.88, 25_000)
    check_layout(image_to_text([Failure(one, long, long, *numbers)] * 3, 99_999, 99_999), slack=1)
    check_layout(text_to_image([Failure(long, one, one, *numbers)] * 3, 99_999, 99_999), slack=1)
