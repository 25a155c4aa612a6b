"""The ViT of transformers' type ``vit``, without transformers, which takes seconds to import.

It runs the operations of ``transformers.ViTModel`` in the same order. A test compares the outputs bit for bit.

A. Dosovitskiy et al.: An Image is Worth 16x16 Words. ICLR 2021.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from vitcapr.encoders.kinds import read_model_config
from vitcapr.errors import UserError

_RENAMED = (
    (r"^vit\.", ""),
    (r"^encoder\.layer\.", "layers."),
    (r"\.attention\.attention\.(query|key|value)\.", r".attention.\1."),
    (r"\.attention\.output\.dense\.", ".attention.o_proj."),
    (r"\.attention\.(q)uery\.|\.attention\.(k)ey\.|\.attention\.(v)alue\.", r".attention.\1\2\3_proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"\.output\.dense\.", ".mlp.fc2."),
)
"""Names of weights before transformers 5 -> names since transformers 5."""


class PlainVit(nn.Module):
    """The encoder of one checkpoint, as :class:`vitcapr.encoders.base.ImageEncoder` describes it."""

    def __init__(self, config: Mapping[str, Any], dtype: torch.dtype, device: torch.device) -> None:
        super().__init__()
        width, side = config["hidden_size"], config["image_size"] // config["patch_size"]
        self.grid, self.dtype, self.device = (side, side), dtype, device
        self.shapes: Mapping[str, tuple[int, ...]] = {"patches": (side * side, width), "cls": (width,)}
        self.embeddings = _Embeddings(config, side * side)
        self.layers = nn.ModuleList([_Layer(config) for _ in range(config["num_hidden_layers"])])
        self.layernorm = nn.LayerNorm(width, eps=config["layer_norm_eps"])

    @property
    def model(self) -> nn.Module:
        return self

    def forward(self, pixels: Tensor) -> Tensor:
        """``pixels: (B, 3, S, S)`` -> (B, 1 + P, D), the CLS vector first."""
        hidden = self.embeddings(pixels)
        for layer in self.layers:
            hidden = layer(hidden)
        normalised: Tensor = self.layernorm(hidden)
        return normalised

    @torch.inference_mode()
    def features(self, pixels: Tensor) -> dict[str, Tensor]:
        hidden = self(pixels)
        return {"patches": hidden[:, 1:], "cls": hidden[:, 0]}


class _PatchEmbeddings(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        patch = config["patch_size"]
        self.projection = nn.Conv2d(config["num_channels"], config["hidden_size"], patch, patch)

    def forward(self, pixels: Tensor) -> Tensor:
        patches: Tensor = self.projection(pixels).flatten(2).transpose(1, 2)
        return patches


class _Embeddings(nn.Module):
    def __init__(self, config: Mapping[str, Any], patches: int) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.cls_token = nn.Parameter(torch.empty(1, 1, width))
        self.position_embeddings = nn.Parameter(torch.empty(1, patches + 1, width))
        self.patch_embeddings = _PatchEmbeddings(config)

    def forward(self, pixels: Tensor) -> Tensor:
        cls_token = self.cls_token.expand(len(pixels), -1, -1)
        return torch.cat((cls_token, self.patch_embeddings(pixels)), dim=1) + self.position_embeddings


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, hidden: Tensor) -> Tensor:
        query, key, value = (
            project(hidden).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, scale=query.shape[-1] ** -0.5)
        mixed: Tensor = self.o_proj(seen.transpose(1, 2).contiguous().flatten(2))
        return mixed


class _Perceptron(nn.Module):
    def __init__(self, width: int, hidden_width: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden_width), nn.Linear(hidden_width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        projected: Tensor = self.fc2(functional.gelu(self.fc1(hidden)))
        return projected


class _Layer(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width, eps = config["hidden_size"], config["layer_norm_eps"]
        self.layernorm_before, self.layernorm_after = nn.LayerNorm(width, eps=eps), nn.LayerNorm(width, eps=eps)
        self.attention = _Attention(width, config["num_attention_heads"])
        self.mlp = _Perceptron(width, config["intermediate_size"])

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = self.attention(self.layernorm_before(hidden)) + hidden
        after: Tensor = self.mlp(self.layernorm_after(hidden)) + hidden
        return after


def load_plain_vit(
    folder: Path, *, output: str, size: tuple[int, int], dtype: torch.dtype, device: torch.device
) -> PlainVit | None:
    """The ViT in ``folder``; None if the checkpoint is of another kind or split, or if ``size`` is not its image size.

    Raises:
        UserError: the checkpoint lacks weights, or they are damaged.
    """
    config, weights = plain_config(folder), folder / "model.safetensors"
    if output != "hidden" or config is None or size != (config["image_size"],) * 2 or not weights.is_file():
        return None
    with torch.device("meta"):
        model = PlainVit(config, dtype, device)
    try:
        tensors = {_renamed(name): tensor.to(device, dtype) for name, tensor in load_file(weights).items()}
    except SafetensorError as error:
        what = f"the weights cannot be read: {error}"
        raise UserError(what, where=folder, remedy="fetch the checkpoint again") from error
    names = model.state_dict().keys()
    if missing := sorted(names - tensors.keys()):
        what = f"the weights lack {len(missing)} tensors of the model, '{missing[0]}' among them"
        raise UserError(what, where=folder, remedy="fetch the checkpoint again")
    for name, tensor in model.state_dict().items():
        if tensors[name].shape != tensor.shape:
            what = (
                f"'{name}' is {tuple(tensors[name].shape)} in the weights, {tuple(tensor.shape)} by the configuration"
            )
            raise UserError(what, where=folder, remedy="fetch the checkpoint again")
    model.load_state_dict({name: tensors[name] for name in names}, assign=True)
    return model.eval().requires_grad_(False)


def plain_config(folder: Path) -> Mapping[str, Any] | None:
    """The configuration of the checkpoint with its defaults, if it is of a plain ViT."""
    content = read_model_config(folder)
    if content.get("model_type") != "vit":
        return None
    config = {"image_size": 224, "patch_size": 16, "num_channels": 3, "layer_norm_eps": 1e-12, **content}
    sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "image_size", "patch_size")
    plain = content.get("hidden_act", "gelu") == "gelu" and content.get("qkv_bias", True) and "head_dim" not in content
    if not plain or not all(isinstance(config.get(key), int) for key in sizes):
        return None
    width, heads, image, patch = (config[key] for key in ("hidden_size", "num_attention_heads", *sizes[-2:]))
    return config if heads > 0 and patch > 0 and width % heads == 0 and image % patch == 0 else None


def _renamed(name: str) -> str:
    for pattern, replacement in _RENAMED:
        name = re.sub(pattern, replacement, name)
    return name
