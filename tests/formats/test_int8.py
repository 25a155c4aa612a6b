"""Stores of eight bits: patches as int8 with a scale for each channel of each image."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr

from tests.checkpoints import run_features
from vitcapr.errors import UserError
from vitcapr.formats.int8 import dequantise, quantise
from vitcapr.formats.store_manifest import check_sealed, read_sealed
from vitcapr.store.check import sealed_files
from vitcapr.store.reader import open_features


def test_no_value_moves_by_more_than_half_a_step() -> None:
    torch.manual_seed(0)
    features = torch.randn(3, 50, 7) * torch.tensor([1e-3, 0.1, 1, 5, 30, 200, 3000.0])
    steps, scale = quantise(features)
    assert steps.dtype == torch.int8
    assert scale.dtype == torch.float16
    error = (steps.float() * scale.float()[:, None] - features).abs()
    assert bool((error <= 0.51 * scale.float()[:, None]).all())
    assert torch.equal(dequantise(steps, scale), (steps.float() * scale.float()[:, None]).half())


def test_a_channel_without_a_signal_is_zero() -> None:
    features = torch.zeros(1, 4, 3)
    features[..., 1], features[..., 2] = 1e-9, 2.0
    assert dequantise(*quantise(features))[0].tolist() == [[0, 0, 2.0]] * 4


def test_a_store_of_eight_bits_is_read_as_float16(experiment: Any) -> None:
    exact, small = experiment.run("exact", store_dtype="float32"), experiment.run("small", store_dtype="int8")
    assert list(small) == ["cls", "patches"]
    assert (small["patches"].dtype, small["patches"].stored, small["cls"].dtype) == (np.float16, np.int8, np.float16)
    steps = np.abs(exact["patches"][:]).max(axis=1, keepdims=True) / 127
    assert (np.abs(small["patches"][:] - exact["patches"][:]) <= 0.52 * steps).all()
    assert np.array_equal(small["cls"][:], exact["cls"][:].astype(np.float16))
    assert np.array_equal(small["patches"][[7, 2, 2]], small["patches"][:][[7, 2, 2]])
    assert not any(file.problem() for file in sealed_files(read_sealed(small.manifest_path), small.path).values())
    group = zarr.open_group(small.path, mode="r")
    product = np.asarray(group["patches"][:], np.float32) * np.asarray(group["patches_scale"][:], np.float32)[:, None]
    assert np.array_equal(product.astype(np.float16), small["patches"][:]), "any reader of Zarr can multiply"
    assert "patches_scale" in small.attributes["eight_bits"]


def test_patches_are_pulled_with_their_scales(experiment: Any, tmp_path: Path) -> None:
    store = experiment.run(store_dtype="int8")
    run_features("push", store.manifest_path, tmp_path / "there")
    run_features("pull", tmp_path / "there", tmp_path / "pulled", "--arrays", "patches")
    with open_features(tmp_path / "pulled") as pulled:
        assert list(pulled) == ["patches"]
        assert np.array_equal(pulled["patches"][:], store["patches"][:])


def test_a_manifest_without_scales_is_refused(experiment: Any) -> None:
    content = json.loads(experiment.run(store_dtype="int8").manifest_path.read_text())
    del content["arrays"]["patches_scale"]
    with pytest.raises(UserError, match=r"arrays\.patches is int8 and has no scale"):
        check_sealed(content, "here")
