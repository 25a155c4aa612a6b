"""A converted ViT of timm gives the features of timm's own arithmetic."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from vitcapr.encoders.image_towers import Backbone, model_image_size
from vitcapr.encoders.preprocess import read_preprocessing
from vitcapr.encoders.timm_checkpoint import convert_timm
from vitcapr.errors import UserError

WIDTH, LAYERS, HEADS, PATCH, GRID = 12, 2, 3, 4, 2


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
