"""A store for more pictures copies the rows that other stores hold, and computes the rest."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.checkpoints import flip_bit, make_dataset
from tests.data_sets import rewrite
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.store_manifest import read_sealed
from vitcapr.store import fill
from vitcapr.store.check import sealed_files
from vitcapr.store.reader import open_features

OLD = 11
"""Pictures of the first experiment: two chunks of four and one of three."""


def with_pictures(experiment: Any, order: list[int], name: str) -> Any:
    """The experiment with these pictures of a larger data set, the first ``OLD`` of which it has."""
    folder = experiment.root / "more"
    data = read_manifest(folder / "manifest.json" if folder.exists() else make_dataset(folder, 15))
    captions = data.captions.iloc[order].assign(image_row=range(len(order)))
    manifest = rewrite(data, experiment.root / name, images=data.images.iloc[order], captions=captions)
    return replace(experiment, manifest=manifest)


def to_do(experiment: Any) -> str:
    """What the last extraction said of its images."""
    lines = (experiment.root / "extract.log").read_text().splitlines()
    return next(line for line in reversed(lines) if "images to do" in line).partition(";")[0]


def sound(store: Any) -> bool:
    return not any(file.problem() for file in sealed_files(read_sealed(store.manifest_path), store.path).values())


def test_rows_are_placed_by_runs() -> None:
    chunk = torch.zeros(6, 2)
    fill._place(torch.tensor([[1.0, 1], [2, 2], [3, 3]]), chunk, np.array([1, 2, 5]))
    assert chunk[:, 0].tolist() == [0, 1, 2, 0, 0, 3]


def test_only_new_pictures_are_computed(experiment: Any) -> None:
    old = experiment.run("old")
    before = old.manifest_path.read_bytes()
    grown = with_pictures(experiment, list(range(13)), "grown")
    new = grown.run("new")
    assert to_do(experiment).endswith("2 of 13 images to do")
    for name in ("cls", "patches"):
        assert np.array_equal(new[name][:OLD], old[name][:])
    links = [new["cls"].chunk_path(index).samefile(old["cls"].chunk_path(index)) for index in range(3)]
    assert links == [True, True, False]  # The third chunk of the old store is not full.
    assert "8 are hard links, which take no space" in (experiment.root / "extract.log").read_text()
    alone = with_pictures(experiment, list(range(13)), "grown").run("alone", reuse=False)
    np.testing.assert_allclose(new["patches"][:], alone["patches"][:], atol=2e-3)
    sealed = json.loads(new.manifest_path.read_text())
    assert sealed["copied"] == {old.path.parent.name: [[0, OLD]]}
    assert old.manifest_path.read_bytes() == before
    assert sound(old)


def test_a_store_in_another_folder_of_stores_is_found(experiment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    old = experiment.run("old")
    there = experiment.root / "elsewhere"
    old.path.parents[1].rename(there)
    with pytest.raises(UserError, match="the feature store is gone"):
        open_features(old.manifest_path)
    monkeypatch.setenv("VITCAPR_STORES", str(there))
    assert open_features(old.manifest_path).path == there / old.path.parent.name / "features.zarr"


def test_another_order_and_a_changed_picture_cost_one_picture(experiment: Any) -> None:
    old = experiment.run("old")
    order = [14, 7, 3, 0, 9, 5, 1, 10, 2, 8]
    new = with_pictures(experiment, order, "mixed").run("new", chunk=6, batch=3)
    assert to_do(experiment).endswith("1 of 10 images to do")
    assert np.array_equal(new["patches"][1:], old["patches"][np.array(order[1:])])
    assert json.loads(new.manifest_path.read_text())["copied"] == {old.path.parent.name: [[1, 10]]}


def test_rows_come_from_several_stores(experiment: Any) -> None:
    first = with_pictures(experiment, [0, 1, 2, 3, 4], "first").run("first")
    second = with_pictures(experiment, [3, 4, 5, 6], "second").run("second")
    both = with_pictures(experiment, [0, 1, 2, 3, 4, 5, 6], "both").run("both")
    assert to_do(experiment).endswith("0 of 7 images to do")
    assert np.array_equal(both["cls"][:5], first["cls"][:])
    assert np.array_equal(both["cls"][5:], second["cls"][2:])


def test_another_recipe_and_other_weights_copy_nothing(experiment: Any) -> None:
    experiment.run("fewer", patches=2)
    experiment.run("old")
    assert to_do(experiment).endswith("11 of 11 images to do")
    for change in ({"store_dtype": "float32"}, {"image_size": 32}, {"dtype": "bfloat16"}):
        experiment.run(f"new {change}", **change)
        assert to_do(experiment).endswith("11 of 11 images to do"), change
    flip_bit(experiment.backbone / "model.safetensors", -1)
    with_pictures(experiment, list(range(12)), "grown").run("new")
    assert to_do(experiment).endswith("12 of 12 images to do")
