"""A converted ViT of timm gives the features of timm's own arithmetic."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

from vitcapr.encoders.image_towers import Backbone, model_image_size
from vitcapr.encoders.preprocess import read_preprocessing
from vitcapr.encoders.timm_checkpoint import convert_timm
from vitcapr.errors import UserError

WIDTH, LAYERS, HEADS, PATCH, GRID = 12, 2, 3, 4, 2
IN_BLOCK = {
    "attention.output.dense": "attn.proj",
    "intermediate.dense": "mlp.fc1",
    "output.dense": "mlp.fc2",
    "layernorm_before": "norm1",
    "layernorm_after": "norm2",
}


def random_vit() -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    shapes = {"cls_token": (1, 1, WIDTH), "pos_embed": (1, 1 + GRID**2, WIDTH)}
    shapes |= {"patch_embed.proj.weight": (WIDTH, 3, PATCH, PATCH), "patch_embed.proj.bias": (WIDTH,)}
    shapes |= {"norm.weight": (WIDTH,), "norm.bias": (WIDTH,), "head.weight": (5, WIDTH), "head.bias": (5,)}
    for layer in range(LAYERS):
        sizes = {"attn.qkv": (3 * WIDTH, WIDTH), "attn.proj": (WIDTH, WIDTH), "mlp.fc1": (20, WIDTH)}
        for name, shape in {**sizes, "mlp.fc2": (WIDTH, 20)}.items():
            shapes |= {f"blocks.{layer}.{name}.weight": shape, f"blocks.{layer}.{name}.bias": shape[:1]}
        for name in ("norm1", "norm2"):
            shapes |= {f"blocks.{layer}.{name}.weight": (WIDTH,), f"blocks.{layer}.{name}.bias": (WIDTH,)}
    return {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}


def write_timm(folder: Path, weights: Mapping[str, torch.Tensor], **changes: object) -> Path:
    folder.mkdir()
    pretrained = {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4], "interpolation": "bilinear", "crop_pct": 0.9}
    config = {"architecture": "vit", "pretrained_cfg": pretrained, "model_args": {"num_heads": HEADS}, **changes}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(dict(weights), folder / "model.safetensors")
    return folder


def forward_features(weights: Mapping[str, torch.Tensor], pixels: torch.Tensor) -> torch.Tensor:
    """timm's ``VisionTransformer.forward_features``, one line an operation."""

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-6)

    x = F.conv2d(pixels, weights["patch_embed.proj.weight"], weights["patch_embed.proj.bias"], stride=PATCH)
    x = torch.cat([weights["cls_token"].expand(len(x), -1, -1), x.flatten(2).transpose(1, 2)], dim=1)
    x = x + weights["pos_embed"]
    for layer in range(LAYERS):
        block = f"blocks.{layer}"
        qkv = linear(norm(x, f"{block}.norm1"), f"{block}.attn.qkv")
        q, k, v = qkv.unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5).softmax(dim=-1)
        x = x + linear((attention @ v).transpose(1, 2).flatten(2), f"{block}.attn.proj")
        x = x + linear(F.gelu(linear(norm(x, f"{block}.norm2"), f"{block}.mlp.fc1")), f"{block}.mlp.fc2")
    return norm(x, "norm")


def test_features_are_those_of_timm(tmp_path: Path) -> None:
    weights = random_vit()
    convert_timm(write_timm(tmp_path / "timm", weights), tmp_path / "converted")
    assert model_image_size(tmp_path / "converted") == (8, 8)
    preprocessing, note = read_preprocessing(tmp_path / "converted", (8, 8))
    assert note is None
    assert (preprocessing.mean, preprocessing.std) == ((0.5, 0.4, 0.3), (0.2, 0.3, 0.4))
    assert (preprocessing.resize, preprocessing.crop, preprocessing.interpolation) == ((8, 8), None, "bilinear")
    pixels = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    found = Backbone(tmp_path / "converted", (8, 8), torch.float32).features(pixels)
    cls, patches = found["cls"], found["patches"]
    expected = forward_features(weights, pixels)
    torch.testing.assert_close(cls, expected[:, 0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(patches, expected[:, 1:], rtol=1e-4, atol=1e-5)


def test_another_network_is_one_line(tmp_path: Path) -> None:
    scaled = {**random_vit(), "blocks.0.ls1.gamma": torch.ones(WIDTH)}
    with pytest.raises(UserError, match=r"has 'blocks\.0\.ls1\.gamma', which a plain ViT does not have"):
        convert_timm(write_timm(tmp_path / "scaled", scaled), tmp_path / "out")
    with pytest.raises(UserError, match="width 12 whose number of heads is not known"):
        convert_timm(write_timm(tmp_path / "unknown", random_vit(), model_args={}), tmp_path / "out")
    with pytest.raises(UserError, match=r"has no config\.json"):
        convert_timm(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.data
def test_the_backbone_of_the_measured_experiments_is_such_a_conversion(tmp_path: Path) -> None:
    """Its weights, put back into timm's names and converted, are again its weights."""
    folder = Path(os.environ.get("VITCAPR_BACKBONES", "/absent")) / "vit-tiny-patch16-224-augreg"
    if not folder.is_dir():
        pytest.skip(f"set VITCAPR_BACKBONES (with {folder.name})")
    stored = {name.removeprefix("vit."): w for name, w in load_file(folder / "model.safetensors").items()}
    weights = {"head.weight": stored.pop("classifier.weight"), "head.bias": stored.pop("classifier.bias")}
    weights |= {"cls_token": stored["embeddings.cls_token"], "pos_embed": stored["embeddings.position_embeddings"]}
    for kind in ("weight", "bias"):
        weights[f"patch_embed.proj.{kind}"] = stored[f"embeddings.patch_embeddings.projection.{kind}"]
        weights[f"norm.{kind}"] = stored[f"layernorm.{kind}"]
        for layer in range(12):
            inside = f"encoder.layer.{layer}"
            qkv = [stored[f"{inside}.attention.attention.{name}.{kind}"] for name in ("query", "key", "value")]
            weights[f"blocks.{layer}.attn.qkv.{kind}"] = torch.cat(qkv)
            for name, timm in IN_BLOCK.items():
                weights[f"blocks.{layer}.{timm}.{kind}"] = stored[f"{inside}.{name}.{kind}"]
    augreg = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic"}
    convert_timm(write_timm(tmp_path / "timm", weights, model_args={}, pretrained_cfg=augreg), tmp_path / "converted")
    again = load_file(tmp_path / "converted/model.safetensors")
    assert again.keys() == stored.keys()
    assert all(torch.equal(again[name], stored[name]) for name in stored)
    size = (224, 224)
    assert read_preprocessing(tmp_path / "converted", size)[0] == read_preprocessing(folder, size)[0]
    pixels = torch.rand(1, 3, *size, generator=torch.Generator().manual_seed(0)) * 2 - 1
    ours, theirs = (Backbone(path, size, torch.float32).features(pixels) for path in (tmp_path / "converted", folder))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
