"""Entropy and mutual information where the truth is known."""

import math

import numpy as np
import pytest

from vitcapr.studies.papers.information import (
    histogram_entropy,
    match_information,
    shared_information,
    spectral_entropy,
)


def test_entropy_of_a_uniform_feature_is_the_number_of_bins() -> None:
    values = np.linspace(0, 1, 3200)[:, None]
    assert histogram_entropy(values) == pytest.approx(5, abs=0.01)
    assert histogram_entropy(np.array([[0.0], [1.0], [0.0], [1.0]])) == pytest.approx(1)
    assert histogram_entropy(np.ones((10, 3))) == 0


def test_spectral_entropy_counts_dimensions() -> None:
    corners = np.concatenate([np.eye(8), -np.eye(8)])
    assert spectral_entropy(corners) == pytest.approx(3)
    assert spectral_entropy(np.outer(np.arange(5.0), [1, 2, 3])) == pytest.approx(0, abs=1e-9)
    assert spectral_entropy(np.ones((4, 2))) == 0


@pytest.mark.parametrize("distance", [0.0, 1.0, 3.0, 8.0])
def test_match_information_of_two_gaussians(distance: float) -> None:
    generator = np.random.default_rng(0)
    true, wrong = generator.normal(distance, 1, 20_000), generator.normal(0, 1, 30_000)
    at = np.linspace(-8, distance + 8, 20_001)
    densities = [np.exp(-((at - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (distance, 0.0)]
    mixed = sum(densities) / 2
    integrand = sum(d * np.log2(np.maximum(d, 1e-300) / np.maximum(mixed, 1e-300)) for d in densities) / 2
    truth = float(np.sum(integrand) * (at[1] - at[0]))
    assert match_information(true, wrong) == pytest.approx(truth, abs=0.01)


@pytest.mark.parametrize(("of_true", "of_wrong"), [(200, 200), (200, 20_000), (20_000, 200)])
def test_match_information_does_not_depend_on_how_many_pairs_there_are(of_true: int, of_wrong: int) -> None:
    """Two unit Gaussians a unit apart hold 0.1607 bits; the mean over draws of few pairs shows the bias alone."""
    found = []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        found.append(match_information(generator.normal(1, 1, of_true), generator.normal(0, 1, of_wrong)))
    assert np.mean(found) == pytest.approx(0.1607, abs=0.015)


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9])
def test_shared_information_of_gaussians(correlation: float) -> None:
    generator = np.random.default_rng(1)
    first = generator.normal(size=(2000, 2))
    second = correlation * first + math.sqrt(1 - correlation**2) * generator.normal(size=(2000, 2))
    truth = -math.log2(1 - correlation**2)  # two independent pairs of half that each
    assert shared_information(first, second) == pytest.approx(truth, abs=0.12)
