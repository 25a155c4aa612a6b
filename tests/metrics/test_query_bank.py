"""Scores less hubness: the formula, what it does to a hub, and that validation alone decides how much."""

import numpy as np
import pytest

from tests.data_sets import embeddings_of
from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings
from vitcapr.metrics import query_bank
from vitcapr.metrics.query_bank import corrected, hubness, weigh, without_hubness
from vitcapr.metrics.ranks import rank_matches

WIDTH = 6


def pool(images: int, seed: int, noise: float = 0.3) -> Embeddings:
    """Two captions an image, near it."""
    draw = np.random.default_rng(seed)
    seen = draw.normal(size=(images, WIDTH))
    owner = np.repeat(np.arange(images), 2)
    captions = seen[owner] + noise * draw.normal(size=(2 * images, WIDTH))
    return embeddings_of(*(side / np.linalg.norm(side, axis=1, keepdims=True) for side in (seen, captions)), owner)


def with_hubs(found: Embeddings, pull: float) -> Embeddings:
    """Every caption leans one way, and towards the images that lie there."""
    captions = found.captions + pull * np.eye(WIDTH, dtype=np.float32)[0]
    return found._replace(captions=captions / np.linalg.norm(captions, axis=1, keepdims=True))


def test_hubness_is_the_log_of_a_mean_in_any_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    found, bank = pool(7, 0), pool(11, 1)
    whole = hubness(found, bank, 9.0)
    for side, items, queries in (
        (whole[0], found.images, bank.captions),
        (whole[1], found.captions, bank.images),
    ):
        scores = items.astype(np.float64) @ queries.astype(np.float64).T
        np.testing.assert_allclose(side, np.log(np.exp(9 * scores).mean(axis=1)) / 9, atol=1e-6)
    monkeypatch.setattr(query_bank, "_SCORES", 40)
    for side, again in zip(whole, hubness(found, bank, 9.0), strict=True):
        np.testing.assert_allclose(side, again, atol=1e-6)


def test_a_weight_of_one_is_the_inverted_softmax() -> None:
    found, bank, beta = with_hubs(pool(20, 0), 0.5), with_hubs(pool(40, 1), 0.5), 8.0
    tried = without_hubness(found, hubness(found, bank, beta), 1.0)
    ranked = rank_matches(tried.images, tried.captions, found.caption_image)
    cosines = (found.images @ found.captions.T).astype(np.float64)
    by_images = np.exp(beta * cosines) / np.exp(beta * bank.captions @ found.images.T).sum(0)[:, None]
    by_captions = np.exp(beta * cosines) / np.exp(beta * bank.images @ found.captions.T).sum(0)
    for caption, image in enumerate(found.caption_image):
        others = np.delete(by_images[:, caption], image)
        assert ranked.t2i[caption] == 1 + (others >= by_images[image, caption]).sum()
    for image in range(20):
        own = found.caption_image == image
        assert ranked.i2t[image] == 1 + (by_captions[image][~own] >= by_captions[image][own].max()).sum()


def test_hubs_are_retrieved_less_often_and_validation_shows_it() -> None:
    bank, validation, test = (with_hubs(pool(60, seed), 0.9) for seed in range(3))
    chosen = weigh(validation, bank, [5.0, 20.0], [0.0, 0.5, 1.0])
    assert chosen.weight > 0
    assert [row["weight"] for row in chosen.curve] == [0.0, 0.5, 1.0] * 2
    assert (chosen.images, chosen.captions) == (60, 120)
    before = rank_matches(test.images, test.captions, test.caption_image)
    after = corrected(test, bank, chosen)
    ranked = rank_matches(after.images, after.captions, test.caption_image)
    assert (ranked.t2i == 1).mean() > (before.t2i == 1).mean() + 0.05
    most = [np.bincount((side.images @ side.captions.T).argmax(0)).max() for side in (test, after)]
    assert most[1] < most[0]


def test_where_it_does_not_help_the_cosines_stay() -> None:
    found = pool(30, 0, noise=0.0)
    chosen = weigh(found, pool(30, 1), [5.0, 20.0], [0.0, 1.0])
    assert chosen.weight == 0
    assert np.array_equal(corrected(found, pool(30, 1), chosen).images[:, :WIDTH], found.images)


def test_a_weight_is_of_its_bank() -> None:
    found, bank = pool(8, 0), pool(9, 1)
    chosen = weigh(found, bank, [5.0], [0.0, 1.0])
    with pytest.raises(UserError, match="chosen with a bank of 9 images and 18 captions"):
        corrected(found, pool(10, 1), chosen)
    with pytest.raises(UserError, match="vectors of 5 numbers"):
        hubness(found, bank._replace(images=bank.images[:, :5], captions=bank.captions[:, :5]), 5.0)
