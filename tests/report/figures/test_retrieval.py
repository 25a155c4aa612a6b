import numpy as np
import pytest
from PIL import Image

from tests.data_sets import embeddings_of
from tests.report.conftest import check_layout
from vitcapr.report import direction
from vitcapr.report.direction import Match
from vitcapr.report.figures.retrieval import find_failures, image_to_text, text_to_image

IMAGES = np.eye(3, dtype=np.float32)
CAPTIONS = np.array([[0.6, 0.8, 0], [0.8, 0, 0.6], [0, 1, 0], [0, 0.96, 0.28]], np.float32)
EMBEDDED = embeddings_of(IMAGES, CAPTIONS, [0, 1, 1, 2])
# Image 0 has caption 0 (0.6), caption 1 is nearer (0.8); image 1 has caption 2 (1.0); image 2's own 0.28 comes third.
I2T, T2I = np.array([2, 1, 2]), np.array([2, 3, 1, 2])


def test_the_nearest_negative_stands_beside_the_nearest_positive():
    assert find_failures(direction.image_to_text(EMBEDDED), I2T, [0, 2]) == {
        0: [((1, pytest.approx(0.8), False), 1), ((0, pytest.approx(0.6), True), 2)],
        2: [((1, pytest.approx(0.6), False), 1), ((3, pytest.approx(0.28), True), 2)],
    }
    captions = find_failures(direction.text_to_image(EMBEDDED), T2I, [0, 1, 3])
    assert [(query, wrong.position, true.position, rank) for query, ((wrong, _), (true, rank)) in captions.items()] == [
        (0, 1, 0, 2),
        (1, 0, 1, 3),
        (3, 1, 2, 2),
    ]


def texts(figure):
    return [text.get_text() for text in figure.texts if text.get_text()]


def test_a_failed_image_has_both_captions_with_ranks_and_scores(picture):
    failures = {0: [(Match(1, 0.81, False), 1), (Match(2, -0.04, True), 1234)]}
    figure = image_to_text(failures, "a title", lambda _: picture, ["", "a wrong caption", "its own"].__getitem__)
    assert texts(figure) == [
        "a title",
        "✗ rank 1, cosine 0.81",
        "a wrong caption",
        "✓ rank 1,234, cosine -0.04",
        "its own",
    ]


def test_a_failed_caption_has_both_images(picture):
    images = [picture, Image.new("RGB", (20, 70), "red")]
    failures = {0: [(Match(0, 0.5, False), 1), (Match(1, 0.4, True), 3)]}
    figure = text_to_image(failures, "a title", images.__getitem__, lambda _: "a red thing")
    assert [axes.images[0].get_array().shape[:2] for axes in figure.axes] == [(40, 60), (70, 20)]


@pytest.mark.parametrize("size", [(400, 20), (20, 400)])
def test_nothing_overlaps_or_leaves_the_page(size):
    failures = {key: [(Match(0, -0.88, False), 1), (Match(0, -0.88, True), 25000)] for key in range(3)}
    shows = (lambda _: Image.new("RGB", size)), (lambda _: "word " * 40)
    check_layout(image_to_text(failures, "a title " * 20, *shows), slack=1)
    check_layout(text_to_image(failures, "a title " * 20, *shows), slack=1)
