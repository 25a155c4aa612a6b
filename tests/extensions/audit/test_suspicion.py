"""Planted swaps in synthetic pairs, and what is said of them."""

import numpy as np
import pytest

from vitcapr.extensions.audit.suspicion import (
    PairedStores,
    Ridge,
    measure,
    probability_wrong,
    right_as_suspicious,
    share_of,
    wrong_share,
)


class _Array(np.ndarray):
    def gather(self, rows):
        return np.asarray(self)[rows]


def stores(images=600, captions=3, wrong=0.1, seed=0):
    """Captions are noisy linear images of 6 hidden numbers; a share of them is exchanged within itself."""
    draw = np.random.default_rng(seed)
    hidden = draw.normal(size=(images, 6))
    owner = np.repeat(np.arange(images), captions)
    x = hidden @ draw.normal(size=(6, 8)) + 0.3 * draw.normal(size=(images, 8))
    y = hidden[owner] @ draw.normal(size=(6, 10)) + 0.3 * draw.normal(size=(len(owner), 10))
    swapped = np.sort(draw.choice(len(owner), round(wrong * len(owner)), replace=False))
    y[swapped] = y[np.roll(swapped, len(swapped) // 2)]
    flags = np.zeros(len(owner), bool)
    flags[swapped] = True
    return PairedStores(x.view(_Array), y.view(_Array), np.full(images, captions)), flags, owner


@pytest.mark.parametrize("captions", [1, 3])
def test_swapped_captions_are_the_most_suspicious(captions):
    paired, wrong, _ = stores(images=1800 // captions, captions=captions)
    found = measure(paired, rivals=300)
    assert wrong[np.argsort(-found.pairs)[: wrong.sum()]].mean() > 0.9


def test_what_fits_better_fits_better_and_belongs_to_another_image():
    paired, wrong, owner = stores(images=60)
    found = measure(paired, rivals=60)
    assert (found.better_image != owner).all()
    assert (owner[found.better_caption[found.better_caption >= 0]] != owner[found.better_caption >= 0]).all()
    assert (found.better_image[wrong] >= 0).mean() > 0.9
    assert (found.better_image[~wrong] < 0).mean() > 0.8


def test_chunks_do_not_change_the_scores(monkeypatch):
    paired, _, _ = stores(images=100)
    whole = measure(paired, rivals=50)
    monkeypatch.setattr("vitcapr.extensions.audit.suspicion._CHUNK", 40)
    assert measure(paired, rivals=50).pairs == pytest.approx(whole.pairs, abs=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
def test_the_interval_of_the_share_holds_the_truth(share):
    paired, wrong, owner = stores(images=2000, wrong=share)
    found = measure(paired, rivals=300)
    estimate = wrong_share(found.pairs, found.null, owner)
    assert estimate.low <= wrong.mean() <= estimate.high
    assert estimate.high - estimate.low < 0.06


def test_p_is_the_share_of_right_pairs_and_the_probability_is_calibrated():
    draw = np.random.default_rng(0)
    wrong = np.arange(20_000) < 2000
    pairs, null = draw.normal(np.where(wrong, 3, 0)), draw.normal(3, size=20_000)
    p, probability = right_as_suspicious(pairs, null, 0.1), probability_wrong(pairs, null, 0.1)
    for level in (0.01, 0.1, 0.5):
        assert (p[~wrong] <= level).mean() == pytest.approx(level, rel=0.2)
    order = np.argsort(pairs)
    assert (np.diff(p[order]) <= 0).all()
    assert (np.diff(probability[order]) >= 0).all()
    # Equal densities times 0.1 and 0.9 at ln(9) / 3 + 1.5.
    assert pairs[probability >= 0.5].min() == pytest.approx(np.log(9) / 3 + 1.5, abs=0.15)


def test_share_of_hand_made_flags():
    flags, alone = np.array([True] * 10 + [False] * 90), np.arange(100)
    assert share_of(flags, alone) == pytest.approx((0.1, 0.0552, 0.1744), abs=1e-4)  # Wilson 1927.
    together = share_of(flags, alone // 10)  # One of ten images has them all.
    assert together.high - together.low > 2 * 0.1192


def fit_by_centring(x, y, penalty):
    """Coefficients and intercept: another way than a column of ones."""
    centred, response = x - x.mean(0), y - y.mean(0)
    weights = np.linalg.solve(centred.T @ centred + penalty * np.eye(x.shape[1]), centred.T @ response)
    return lambda rows: (rows - x.mean(0)) @ weights + y.mean(0)


def test_an_image_is_predicted_by_the_fit_without_it():
    counts, draw = np.array([2, 1, 3, 0, 2, 5, 1]), np.random.default_rng(0)
    owner = np.repeat(np.arange(len(counts)), counts)
    images, texts = draw.normal(size=(len(counts), 3))[owner] + 5, draw.normal(size=(counts.sum(), 4)) - 2
    for x, y in ((images, texts), (texts, images)):
        rows = np.insert(x, 0, 1, axis=1)
        predicted = Ridge.fit(rows.T @ rows, rows.T @ y, 0.1).left_out(x, y, counts)
        for image in np.unique(owner):
            own = owner == image
            expected = fit_by_centring(x[~own], y[~own], 0.1 * len(x) * x.var(0).mean())
            assert predicted[own] == pytest.approx(expected(x[own]))
