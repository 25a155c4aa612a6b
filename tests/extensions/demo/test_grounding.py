import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from tests.data_sets import write_data_set, write_texts
from vitcapr.extensions.demo import grounding
from vitcapr.extensions.demo.grounding import (
    MaskedPicture,
    attention_share,
    interpolation,
    pointing_chance,
    pointing_hit,
)
from vitcapr.extensions.demo.stages.score_grounding import score_grounding
from vitcapr.formats.captions import AttentionTable, write_attention
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.pipeline.run import run_stage

QUARTER = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=bool)


def test_a_mask_covers_part_of_a_patch() -> None:
    """The mask is one pixel of the four of the first patch."""
    mask = np.zeros((4, 4), bool)
    mask[0, 0] = True
    assert attention_share(np.array([[1.0, 0.0], [0.0, 0.0]]), mask) == pytest.approx(1 / 4)


def test_a_pixel_may_lie_in_two_patches() -> None:
    """Three pixels on two patches: the middle one is half in each."""
    mask = np.array([[False, True, False]])
    assert attention_share(np.array([[0.8, 0.2]]), mask) == pytest.approx(0.8 / 3 + 0.2 / 3)


def test_even_attention_scores_the_area() -> None:
    mask = np.random.default_rng(0).random((37, 50)) < 0.3
    assert attention_share(np.full((7, 5), 1 / 35), mask) == pytest.approx(mask.mean())


def test_weights_need_not_sum_to_one() -> None:
    """Half precision rounds them."""
    assert attention_share(np.array([[2.0, 2.0]]), np.array([[True, False]])) == pytest.approx(0.5)
    assert attention_share(np.zeros((2, 2)), QUARTER) == 0


@pytest.mark.parametrize(
    ("grid", "size"), [((2, 2), (4, 4)), ((14, 14), (112, 112)), ((3, 5), (31, 17)), ((1, 4), (8, 2))]
)
def test_upsampling_is_bilinear(grid: tuple[int, int], size: tuple[int, int]) -> None:
    heat = np.random.default_rng(0).random(grid)
    ours = interpolation(grid[0], size[0]) @ heat @ interpolation(grid[1], size[1]).T
    theirs = torch.nn.functional.interpolate(torch.from_numpy(heat)[None, None], size, mode="bilinear")[0, 0]
    np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-12)


def test_a_map_that_points_nowhere_scores_the_area() -> None:
    assert pointing_hit(np.full((2, 2), 0.25), QUARTER) == pytest.approx(1 / 4)


def test_pointing_chance_is_the_mean_over_single_patches() -> None:
    mask = np.random.default_rng(1).random((11, 14)) < 0.4
    grid = (3, 4)
    hits = []
    for patch in range(12):
        heat = np.zeros(12)
        heat[patch] = 1
        hits.append(pointing_hit(heat.reshape(grid), mask))
    assert pointing_chance(mask, grid) == pytest.approx(np.mean(hits))


def test_measures_by_hand() -> None:
    """A dog in the upper left quarter, two cats in the lower half; the second picture is empty."""
    labels = np.zeros((4, 4), np.uint8)
    labels[:2, :2] = 1
    labels[2:, :2], labels[2:, 2:] = 2, 3
    cats = frozenset({2, 3})
    picture = MaskedPicture(labels, {"dog": frozenset({1}), "cat": cats, "cats": cats})
    empty = MaskedPicture(np.zeros((4, 4), np.uint8), {})
    captions = [["a", "dog", "sees", "cats"], ["a", "dog"]]
    attention = [
        np.array([[1, 0, 0, 0], [0.7, 0.1, 0.1, 0.1], [0, 0, 0, 1], [0.6, 0, 0.2, 0.2]]),
        np.array([[1, 0, 0, 0], [1, 0, 0, 0.0]]),
    ]
    words = frozenset({"dog", "cat", "cats"})
    found = grounding.measures(captions, attention, [picture, empty], words, (2, 2))
    assert found["grounding"].value == pytest.approx((0.7 + 0.4) / 2)
    assert found["grounding_chance"].value == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert found["pointing_game"].value == pytest.approx((1 + 0) / 2)
    assert found["pointing_game_chance"].value == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert found["object_hallucination"].value == pytest.approx(1 / 3)
    assert found["object_words_mean"].value == pytest.approx(3 / 2)
    assert (found["grounding"].n, found["object_hallucination"].n) == (1, 2)


def test_the_stage_reads_masks_and_attention(tmp_path: Path) -> None:
    """All words look at the upper left quarter, where the dog of the first picture is; the second has cats below."""
    written = {"one.png": "a dog runs", "two.png": "cats and a dog"}
    labels = {image: np.zeros((4, 4), np.uint8) for image in written}
    labels["one.png"][:2, :2] = 1
    labels["two.png"][2:, :2], labels["two.png"][2:, 2:] = 1, 2
    for image, label in labels.items():
        Image.fromarray(label).save(tmp_path / f"mask-{image}")
    named = [("one.png", 0, ["dog", "dogs"], 1), ("two.png", 0, ["cat", "cats"], 1), ("two.png", 1, ["cat", "cats"], 2)]
    objects = pd.DataFrame(named, columns=["image_id", "object_id", "words", "label"])
    objects = objects.assign(mask="mask-" + objects["image_id"], kind="animal", color="brown", texture="plain")
    captions = [(image, "en", text) for image, text in written.items()]
    write_data_set(tmp_path, dict.fromkeys(written, "test"), captions, objects=objects)
    Vocabulary.build(["a"], min_count=1).write(tmp_path / "vocabulary.json")
    write_texts(tmp_path / "captions.json", written)
    weights = np.eye(1, 4, dtype=np.float16).repeat(3 + 4, axis=0)
    write_attention(tmp_path / "attention.npz", AttentionTable(weights, np.array([0, 3, 7]), np.arange(2), (2, 2)))
    files = {name: tmp_path / f"{name}.json" for name in ("captions", "manifest", "vocabulary", "metrics")}
    settings = {"metrics": {"bootstrap_samples": 50}}
    run_stage(score_grounding, attention=tmp_path / "attention.npz", split="test", settings=settings, **files)
    metrics = json.loads((tmp_path / "metrics.json").read_text())["metrics"]
    assert metrics["grounding"]["value"] == metrics["pointing_game"]["value"] == 0.5
    assert metrics["grounding_chance"]["value"] == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert metrics["object_hallucination"]["value"] == pytest.approx(1 / 3)
