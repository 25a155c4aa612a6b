"""Predictions that leave an image out against a fit to all other images."""

import numpy as np
import pytest

from vitcapr.studies.audit.ridge import Moments, Ridges

COUNTS = np.array([2, 1, 3, 0, 2, 5, 1])


def _pairs():
    draw = np.random.default_rng(0)
    return draw.normal(size=(len(COUNTS), 3)) + 5, draw.normal(size=(COUNTS.sum(), 4)) - 2


def _fit(x, y, penalty):
    """Coefficients and intercept by centring: another way than a column of ones."""
    centred, response = x - x.mean(0), y - y.mean(0)
    weights = np.linalg.solve(centred.T @ centred + penalty * np.eye(x.shape[1]), centred.T @ response)
    return lambda rows: (rows - x.mean(0)) @ weights + y.mean(0)


def test_an_image_is_predicted_by_the_fit_without_it():
    images, texts = _pairs()
    owner = np.repeat(np.arange(len(COUNTS)), COUNTS)
    own = images[owner]
    expected_texts, expected_images = Ridges(Moments.of(images, texts, COUNTS), 0.1, 0.3, siblings=False).left_out(
        images, texts, COUNTS
    )
    for image in range(len(images)):
        kept = owner != image
        to_text = _fit(own[kept], texts[kept], 0.1 * len(own) * own.var(0).mean())
        to_image = _fit(texts[kept], own[kept], 0.3 * len(own) * texts.var(0).mean())
        assert expected_texts[image] == pytest.approx(to_text(images[image]))
        assert expected_images[~kept] == pytest.approx(to_image(texts[~kept]))


def test_moments_of_parts_add_up():
    images, texts = _pairs()
    first = COUNTS[:3].sum()
    parts = Moments.of(images[:3], texts[:first], COUNTS[:3]) + Moments.of(images[3:], texts[first:], COUNTS[3:])
    whole = Moments.of(images, texts, COUNTS)
    for name in ("xx", "xy", "yy"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name))


def test_points_hold_both_cosines():
    images, texts = _pairs()
    ridges = Ridges(Moments.of(images, texts, COUNTS), 0.1, 0.3, siblings=False)
    expected_text, expected_image = ridges.left_out(images, texts, COUNTS)
    of_images, of_texts = ridges.points(images, texts, COUNTS)
    image_mean, text_mean = np.repeat(images, COUNTS, axis=0).mean(0), texts.mean(0)

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    score = cosine(expected_text[1] - text_mean, texts[2] - text_mean)
    score += cosine(images[1] - image_mean, expected_image[2] - image_mean)
    assert of_images[2] @ of_texts[2] == pytest.approx(score, rel=1e-5)
