"""Entropy and mutual information where the truth is known, and the command that measures them."""

import math

import numpy as np
import pytest

from tests.data_sets import embeddings_of, write_data_set
from vitcapr.errors import UserError
from vitcapr.extensions.papers.information import (
    histogram_entropy,
    match_information,
    shared_information,
)
from vitcapr.extensions.papers.stages.measure_information import measure_information
from vitcapr.formats.embeddings import write_embeddings
from vitcapr.formats.scores import read_metrics
from vitcapr.pipeline.run import run_stage


def test_entropy_of_a_uniform_feature_is_the_number_of_bins() -> None:
    values = np.linspace(0, 1, 3200)[:, None]
    assert histogram_entropy(values) == pytest.approx(5, abs=0.01)
    assert histogram_entropy(np.array([[0.0], [1.0], [0.0], [1.0]])) == pytest.approx(1)
    assert histogram_entropy(np.ones((10, 3))) == 0


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


def data_of(folder, count):
    """A test split of ``count`` images with two captions each, and embeddings of it before and after training."""
    names = [f"i{number:02d}" for number in range(count)]
    captions = [(name, "en", "a dog") for name in names for _ in range(2)]
    manifest = write_data_set(folder, dict.fromkeys(names, "test"), captions)
    draw, owner = np.random.default_rng(0), np.repeat(np.arange(count), 2)
    pictures, noise = (draw.normal(size=(number, 8)).astype(np.float32) for number in (count, 2 * count))
    for name, texts in (("before", noise), ("after", pictures[owner] + 0.1 * noise)):
        unit = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (pictures, texts)]
        write_embeddings(folder / f"{name}.npz", embeddings_of(*unit, owner))
    embeddings = {name: folder / f"{name}.npz" for name in ("before", "after")}
    return {**embeddings, "manifest": manifest, "split": "test", "metrics": folder / "metrics.json"}


def test_training_shows_in_what_matches_tell(tmp_path):
    inputs = data_of(tmp_path, 60)
    run_stage(measure_information, **inputs)
    both = read_metrics(tmp_path / "metrics.json")["metrics"]
    found = {name: score["value"] for name, score in both.items()}
    for name in ("image_match_information", "caption_match_information", "shared_information"):
        assert found[name] > found[f"{name}_before"] + 0.3
    assert found["image_entropy"] == found["image_entropy_before"]
    run_stage(measure_information, **{name: path for name, path in inputs.items() if name != "before"})
    alone = read_metrics(tmp_path / "metrics.json")["metrics"]
    assert alone == {name: score for name, score in both.items() if not name.endswith("_before")}


def test_too_few_pictures_for_the_estimator_are_an_error(tmp_path):
    with pytest.raises(UserError, match="3 pictures are too few"):
        run_stage(measure_information, **data_of(tmp_path, 3))
