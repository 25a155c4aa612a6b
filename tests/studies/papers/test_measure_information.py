"""The command that measures features before and after training."""

import numpy as np
import pytest

from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.formats.scores import read_metrics
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.measure_information import measure_information


def data_of(folder, count):
    """A test split of ``count`` images with two captions each, and embeddings of it before and after training."""
    names = [f"i{number:02d}" for number in range(count)]
    captions = [(name, "en", "a dog") for name in names for _ in range(2)]
    manifest = write_data_set(folder, dict.fromkeys(names, "test"), captions)
    draw, owner = np.random.default_rng(0), np.repeat(np.arange(count, dtype=np.int32), 2)
    pictures, noise = (draw.normal(size=(number, 8)).astype(np.float32) for number in (count, 2 * count))
    for name, texts in (("before", noise), ("after", pictures[owner] + 0.1 * noise)):
        unit = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (pictures, texts)]
        rows = np.arange(2 * count, dtype=np.int32)
        arrays = {"images": unit[0], "captions": unit[1], "image_row": rows[:count], "caption_row": rows}
        np.savez(folder / f"{name}.npz", **arrays, caption_image=owner)
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
