import numpy as np
import pytest

from vitcapr.metrics.bootstrap import (
    Measure,
    compare,
    few_images,
    interval,
    interval_protocol,
    mean_measure,
    plain_score,
    ratio_measure,
    score_of,
)
from vitcapr.metrics.captions.bleu import bleu

RANDOM = np.random.default_rng(7)


def naive_interval(values: list[str], references: list[list[str]], samples: int, seed: int) -> tuple[float, float]:
    """Draw captions themselves and compute BLEU-2 of every draw from scratch."""
    random = np.random.default_rng(seed)
    scores = []
    for _ in range(samples):
        drawn = random.integers(0, len(values), (1, len(values)))[0]
        measure = bleu([values[i] for i in drawn], [references[i] for i in drawn])["bleu_2"]
        scores.append(measure.value)
    return np.quantile(scores, 0.025), np.quantile(scores, 0.975)


def test_interval_of_bleu_equals_recomputing_it_for_every_draw() -> None:
    words = list("abcdef")
    candidates = [" ".join(RANDOM.choice(words, 5)) for _ in range(12)]
    references = [[" ".join(RANDOM.choice(words, 6)) for _ in range(2)] for _ in range(12)]
    measure = bleu(candidates, references)["bleu_2"]
    assert interval(measure, 50, 3) == pytest.approx(naive_interval(candidates, references, 50, 3))


def test_draws_beyond_one_block_are_one_stream() -> None:
    values = RANDOM.normal(size=20)
    random = np.random.default_rng(5)
    means = [values[random.integers(0, 20, (1, 20))[0]].mean() for _ in range(150)]
    expected = np.quantile(means, [0.025, 0.975])
    assert interval(mean_measure(values), 150, 5) == pytest.approx(tuple(expected))


def test_a_ratio_counts_what_images_have() -> None:
    measure = ratio_measure([1, 0, 3], [2, 0, 3])
    assert measure.value == pytest.approx(4 / 5)
    assert measure.n == 2
    assert measure.per_image[0] == 0.5
    assert np.isnan(measure.per_image[1])


def test_a_system_against_itself_and_against_one_that_is_better_everywhere() -> None:
    """Only exchanging none or all of 20 images is as far apart: one draw in half a million."""
    values = RANDOM.normal(size=20)
    assert compare(mean_measure(values), mean_measure(values), 200, 0) == (0, 0, 0, 1)
    better = mean_measure(values + 1)
    found = compare(better, mean_measure(values), 999, 0)
    assert found == pytest.approx((1, 1, 1, 1 / 1000))
    mirrored = compare(mean_measure(values), better, 999, 0)
    assert mirrored == pytest.approx((-1, -1, -1, 1 / 1000))


def test_p_value_of_three_images_by_enumeration() -> None:
    """Differences 1, 2, -1: the mean is 2/3; of eight exchanges the six with |sum| >= 2 are as far apart."""
    found = compare(mean_measure([1, 2, -1]), mean_measure([0, 0, 0]), 20_000, 0)
    assert found.p_value == pytest.approx(6 / 8, abs=0.02)


def test_comparison_of_a_score_that_is_no_mean() -> None:
    a = Measure(np.array([[1.0, 2.0], [3.0, 4.0]]), lambda sums: np.asarray(sums[..., 0] / sums[..., 1]))
    b = Measure(np.array([[2.0, 2.0], [1.0, 4.0]]), a.aggregate)
    found = compare(a, b, 500, 0)
    assert found.difference == pytest.approx(4 / 6 - 3 / 6)
    assert found.low == pytest.approx(1 / 2 - 1)
    assert found.high == pytest.approx(3 / 4 - 1 / 4)


def test_a_score_has_its_interval_and_the_number_of_images_and_a_score_of_nothing_is_null() -> None:
    assert score_of(mean_measure([2.0, 2.0, 2.0]), 100, 0) == {"value": 2, "low": 2, "high": 2, "n": 3}
    nothing = {"value": None, "low": None, "high": None, "n": 0}
    assert score_of(ratio_measure([0, 0], [0, 0]), 100, 0) == nothing
    assert plain_score(float("nan"), 0) == nothing
    assert (interval_protocol(9, 2), interval_protocol(0, 2)) == (["ci:95,samples=9,seed=2"], [])


def test_the_width_of_a_small_split_by_hand() -> None:
    """1.96 times the root of 0.25 / 25 is 0.196."""
    assert "95 % interval of a share, such as Recall@1, is up to ± 20 points" in few_images(25)
    assert "CIDEr, which weighs by images, is 0" in few_images(1)
    assert few_images(50) == ""
