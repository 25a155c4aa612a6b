"""Hidden layers of a backbone, stored beside its output by one forward pass."""

import json
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr
from PIL import Image
from transformers import CLIPVisionModel, SiglipVisionModel, ViTModel

from tests.checkpoints import save_checkpoint, tiny_vit
from tests.encoders.two_towers import clip, siglip
from tests.store.test_growing import to_do, with_pictures
from vitcapr.encoders.image_encoders import load_image_encoder
from vitcapr.encoders.image_recipe import open_like
from vitcapr.errors import UserError
from vitcapr.store.statistics import statistics

OF_LAYER_1 = ["cls", "cls_1", "patches", "patches_1"]


def encoder(folder: Path, **options: Any) -> Any:
    device = torch.device("cpu")
    return load_image_encoder(folder, size=(16, 16), dtype=torch.float32, device=device, **options)


@pytest.mark.parametrize(
    ("family", "model", "has_cls"),
    [("vit", ViTModel, True), ("clip", CLIPVisionModel, True), ("siglip", SiglipVisionModel, False)],
)
def test_a_layer_is_the_hidden_state_of_transformers(tmp_path: Path, family: str, model: Any, has_cls: bool) -> None:
    """hidden_states[k] is the output of layer k, and hidden_states[0] that of the embeddings."""
    makes = {"vit": lambda folder: save_checkpoint(tiny_vit(), folder), "clip": clip, "siglip": siglip}
    folder = makes[family](tmp_path / family)
    pixels = torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        states = model.from_pretrained(folder).eval()(pixels, output_hidden_states=True).hidden_states
    tower = encoder(folder, layers=[1, 2])
    found = tower.features(pixels)
    assert sorted(found) == ["cls", "cls_1", "cls_2", "patches", "patches_1", "patches_2"]
    assert {name: tuple(array.shape[1:]) for name, array in found.items()} == tower.shapes
    patches = states[1][:, 1:] if has_cls else states[1]
    torch.testing.assert_close(found["patches_1"], patches, atol=1e-5, rtol=1e-4)
    cls = states[1][:, 0] if has_cls else patches.mean(1)
    torch.testing.assert_close(found["cls_1"], cls, atol=1e-5, rtol=1e-4)
    if family == "vit":  # The last layer is stored before its normalisation.
        torch.testing.assert_close(tower.model.layernorm(found["patches_2"]), found["patches"])
    plain = encoder(folder).features(pixels)
    assert all(torch.equal(plain[name], found[name]) for name in ("cls", "patches"))


def test_any_reader_of_zarr_finds_the_layers(experiment: Any) -> None:
    plain = experiment.run("plain", store_dtype="float32")
    store = experiment.run(layers=[1], store_dtype="float32")
    group = zarr.open_group(store.path, mode="r")
    assert [(name, store[name].shape) for name in store] == [
        *(("cls", (11, 8)), ("cls_1", (11, 8))),
        *(("patches", (11, 4, 8)), ("patches_1", (11, 4, 8))),
    ]
    for name in OF_LAYER_1:
        assert np.array_equal(group[name][:], store[name][:])
    assert group.attrs["layers"] == [1]
    assert "before any final normalisation" in group.attrs["hidden_layers"]
    assert group["patches_1"].metadata.dimension_names == ("image", "patch", "channel")
    assert not np.allclose(store["patches_1"][:], store["patches"][:], atol=0.1)
    assert statistics(store, "patches_1")["vectors"] == 44
    assert list(plain) == ["cls", "patches"]
    assert "layers" not in plain.attributes
    assert np.array_equal(plain["patches"][:], store["patches"][:])
    assert plain.fingerprint != store.fingerprint


def test_a_grown_store_copies_the_layers(experiment: Any) -> None:
    old = experiment.run("old", layers=[1, 2], store_dtype="int8")
    new = with_pictures(experiment, list(range(13)), "grown").run("new", layers=[1, 2], store_dtype="int8")
    assert to_do(experiment).endswith("2 of 13 images to do")
    assert all(np.array_equal(new[name][:11], old[name][:]) for name in old)
    assert json.loads(new.manifest_path.read_text())["copied"] == {old.path.parent.name: [[0, 11]]}


def test_a_model_of_a_layer_sees_it_as_its_features(experiment: Any) -> None:
    store = experiment.run(layers=[1, 2], store_dtype="int8")
    seen = store.at_layer(1)
    assert list(seen) == ["cls", "patches"]
    assert all(np.array_equal(seen[name][:], store[f"{name}_1"][:]) for name in seen)
    assert (seen.fingerprint, seen.ids, seen.grid) == (store.fingerprint, store.ids, store.grid)
    assert store.at_layer(None) is store
    in_another_process = ForkingPickler.loads(ForkingPickler.dumps(seen))
    assert list(in_another_process) == list(seen)
    assert np.array_equal(in_another_process["cls"][:], seen["cls"][:])
    assert len(store) == 6
    alone = open_like(store.attributes, torch.device("cpu"), str(experiment.backbone), layer=1)
    picture = Image.open(experiment.root / "data/pictures/bild_3_ä.png").convert("RGB")
    for name, features in alone.encode([picture]).items():
        np.testing.assert_allclose(features[0], seen[name][3].astype(np.float32), rtol=2e-3, atol=1e-3)


def test_patches_are_pooled_or_left_out(experiment: Any) -> None:
    """A cell of the grid is the mean of its patches, of hidden layers as well."""
    dtype = "int8"
    every = experiment.run("all", layers=[1], store_dtype=dtype)
    one = experiment.run("one", layers=[1], store_dtype=dtype, patches=1)
    assert (every.grid, one.grid, one["patches"].shape[1]) == ((2, 2), (1, 1), 1)
    for name in ("patches", "patches_1"):
        means = every[name][:].astype(np.float32).mean(1, keepdims=True)
        np.testing.assert_allclose(one[name][:].astype(np.float32), means, rtol=1e-2, atol=2e-2)
    assert np.array_equal(every["cls"][:], one["cls"][:])
    none = experiment.run("none", layers=[1], store_dtype=dtype, patches="none")
    assert (list(none), none.grid) == (["cls", "cls_1"], (0, 0))
    of_layer = open_like(none.attributes, torch.device("cpu"), str(experiment.backbone), layer=1)
    picture = Image.open(experiment.root / "data/pictures/bild_3_ä.png").convert("RGB")
    alone = open_like(one.attributes, torch.device("cpu"), str(experiment.backbone)).encode([picture])
    np.testing.assert_allclose(alone["patches"][0], one["patches"][3].astype(np.float32), rtol=2e-3, atol=1e-3)
    (cls,) = of_layer.encode([picture]).values()
    np.testing.assert_allclose(cls[0], none["cls_1"][3].astype(np.float32), rtol=2e-3, atol=1e-3)
    with pytest.raises(UserError, match=r"2 x 2 patches, and they are to be pooled to 3 .*at most 2"):
        experiment.run("three", patches=3)


def test_a_layer_that_is_not_there_is_one_line(experiment: Any) -> None:
    with pytest.raises(UserError, match=r"no layer 9 .*it has 1, 2$"):
        experiment.run(layers=[1, 2]).at_layer(9)
    with pytest.raises(UserError, match=r"has 2 layers, and layer 12 is to be stored .*numbers from 1 to 2"):
        experiment.run(layers=[1, 12])
