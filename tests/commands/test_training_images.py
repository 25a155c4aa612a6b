import numpy as np
import pytest
from PIL import Image

import vitcapr
from tests.data_sets import encoded
from vitcapr.commands.caption_page import Nearness, TrainingImages
from vitcapr.data.images import decode


def test_an_unusual_vector_by_hand() -> None:
    """Of three vectors, the nearest other one has cosine 0.8, 0.8 and 0.6; a hundredth of the way from 0.6 to 0.8."""
    near = Nearness(np.array([[2.0, 0, 0], [0.8, 0.6, 0], [0, 1.0, 0]]))
    assert near.usual == pytest.approx(0.604)
    assert near.likeness(np.array([5.0, 0, 0])) == pytest.approx((1.0, 0.604))
    assert near.likeness(np.array([0.6, 0, 0.8])) == pytest.approx((0.6, 0.604))


def test_a_training_image_is_usual_and_samples_are_test_images(project) -> None:
    images = TrainingImages(vitcapr.load_captioner(project / "results/toy/captioners/patch_attention"))
    assert images.samples == ["photo 03.png", "photo 07.png", "photo 11.png"]
    assert images.sample(0) == (project / "photos/photo 03.png").read_bytes()
    training = decode((project / "photos/photo 00.png").read_bytes(), 10_000_000)
    assert images.likeness(training).cosine == pytest.approx(1, abs=1e-3)


def test_without_the_data_set_there_is_neither(project) -> None:
    (project / "results/toy/data").rename(project / "away")
    try:
        images = TrainingImages(vitcapr.load_captioner(project / "results/toy/captioners/patch_attention"))
        assert images.samples == []
        assert images.likeness(decode(encoded(Image.new("RGB", (9, 9)), "PNG"), 100)) is None
    finally:
        (project / "away").rename(project / "results/toy/data")
