"""The ViT without transformers gives the very numbers of transformers."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import ViTConfig, ViTModel

from vitcapr.encoders.image_towers import Backbone
from vitcapr.encoders.plain_vit import PlainVit, _renamed, load_plain_vit
from vitcapr.errors import UserError

CPU = torch.device("cpu")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, image_size=16, patch_size=4
    )
    ViTModel(config, add_pooling_layer=False).save_pretrained(tmp_path)
    return tmp_path


def loaded(folder: Path, size: int = 16, output: str = "hidden", dtype: torch.dtype = torch.float32) -> PlainVit | None:
    return load_plain_vit(folder, output=output, size=(size, size), dtype=dtype, device=CPU)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bit_for_bit(checkpoint: Path, dtype: torch.dtype) -> None:
    plain, backbone = loaded(checkpoint, dtype=dtype), Backbone(checkpoint, (16, 16), dtype)
    assert plain is not None
    pixels = torch.randn(3, 3, 16, 16).to(dtype)
    for name, expected in backbone.features(pixels).items():
        assert torch.equal(plain.features(pixels)[name], expected)
    assert (plain.grid, plain.shapes) == (backbone.grid, backbone.shapes)


def test_names_of_weights_before_and_since_version_5(checkpoint: Path) -> None:
    pixels, outputs, seen = torch.randn(1, 3, 16, 16), [], set()
    weights = load_file(checkpoint / "model.safetensors")
    for names in (str, _renamed, "vit.{}".format):
        save_file({names(name): tensor for name, tensor in weights.items()}, checkpoint / "model.safetensors")
        seen |= load_file(checkpoint / "model.safetensors").keys()
        model = loaded(checkpoint)
        assert model is not None
        outputs.append(model.features(pixels)["patches"])
    assert {"layers.1.attention.q_proj.bias", "vit.encoder.layer.1.attention.attention.query.bias"} <= seen
    assert all(torch.equal(output, outputs[0]) for output in outputs)


def test_what_is_left_to_transformers(checkpoint: Path) -> None:
    assert loaded(checkpoint, size=32) is None
    assert loaded(checkpoint, output="aligned") is None
    config = json.loads((checkpoint / "config.json").read_text())
    for change in ({"model_type": "dinov2"}, {"hidden_act": "relu"}, {"qkv_bias": False}, {"num_attention_heads": 5}):
        (checkpoint / "config.json").write_text(json.dumps(config | change))
        assert loaded(checkpoint) is None


@pytest.mark.parametrize(
    ("change", "what"), [({"intermediate_size": 24}, "is \\(20, 12\\) in the weights"), ({}, "cannot be read")]
)
def test_damaged_weights(checkpoint: Path, change: dict[str, int], what: str) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | change))
    if not change:
        weights = checkpoint / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(UserError, match=what):
        loaded(checkpoint)


def test_weights_that_lack_a_tensor(checkpoint: Path) -> None:
    weights = load_file(checkpoint / "model.safetensors")
    del weights["layernorm.bias"]
    save_file(weights, checkpoint / "model.safetensors")
    with pytest.raises(UserError, match=r"lack 1 tensors of the model, 'layernorm\.bias'"):
        loaded(checkpoint)
