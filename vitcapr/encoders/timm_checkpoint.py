"""Converts a plain ViT of timm to the files that transformers reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, read_json, write_json

FILES = ("config.json", "model.safetensors")
"""The files of a timm checkpoint on the hub that are read."""
_HEADS = {192: 3, 384: 6, 768: 12, 1024: 16, 1280: 16}
"""Attention heads of timm's plain ViTs by their width."""
_EPSILON = 1e-6
_RESAMPLE = {"bilinear": 2, "bicubic": 3}
_IN_BLOCK = {
    "norm1": "layernorm_before",
    "attn.proj": "attention.output.dense",
    "norm2": "layernorm_after",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
}
_OUTSIDE = {
    "cls_token": "embeddings.cls_token",
    "pos_embed": "embeddings.position_embeddings",
    "patch_embed.proj.weight": "embeddings.patch_embeddings.projection.weight",
    "patch_embed.proj.bias": "embeddings.patch_embeddings.projection.bias",
    "norm.weight": "layernorm.weight",
    "norm.bias": "layernorm.bias",
}
_CLASSIFIER = ("head.weight", "head.bias")


def convert_timm(source: Path, folder: Path) -> None:
    """Write ``config.json``, ``model.safetensors`` and ``preprocessor_config.json`` of a plain ViT, without classifier.

    Pictures are resized to the model's size as a whole; timm's crop is left out.

    Args:
        source: a folder with ``FILES``, as a repository of timm on the hub has them.

    Raises:
        UserError: it is not such a folder, or the network is not a plain ViT.
    """
    for name in FILES:
        if not (source / name).is_file():
            raise UserError(f"a timm checkpoint has no {name}", where=source, remedy=f"it needs {' and '.join(FILES)}")
    described = read_json(source / "config.json")
    try:
        tensors = load_file(source / "model.safetensors")
    except SafetensorError as error:
        raise UserError(f"not a file of weights: {error}", where=source / "model.safetensors") from error
    weights = _renamed(tensors, source)
    config = _config(tensors, described, source)
    write_json(folder / "config.json", config)
    write_json(folder / "preprocessor_config.json", _preprocessor(described.get("pretrained_cfg", {}), config))
    with atomic_path(folder / "model.safetensors") as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})


def _renamed(tensors: Mapping[str, torch.Tensor], where: Path) -> dict[str, torch.Tensor]:
    """The tensors under the names of ``transformers.ViTModel``; queries, keys and values apart."""
    weights = {}
    for name, tensor in tensors.items():
        if name in _CLASSIFIER:
            continue
        if name in _OUTSIDE:
            weights[_OUTSIDE[name]] = tensor
            continue
        _, _, rest = name.partition("blocks.")
        number, _, part = rest.partition(".")
        layer, _, kind = part.rpartition(".")
        if layer == "attn.qkv" and number.isdigit():
            for which, piece in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                weights[f"encoder.layer.{number}.attention.attention.{which}.{kind}"] = piece.contiguous()
        elif layer in _IN_BLOCK and number.isdigit():
            weights[f"encoder.layer.{number}.{_IN_BLOCK[layer]}.{kind}"] = tensor
        else:
            what = f"the checkpoint has '{name}', which a plain ViT does not have"
            raise UserError(what, where=where, remedy="convert a ViT with CLS token and no registers or layer scale")
    if missing := sorted(_OUTSIDE.keys() - tensors.keys()):
        raise UserError(f"the checkpoint has no '{missing[0]}', which a plain ViT has", where=where)
    return weights


def _config(tensors: Mapping[str, torch.Tensor], described: Mapping[str, Any], where: Path) -> dict[str, Any]:
    width, channels, patch, _ = tensors["patch_embed.proj.weight"].shape
    layers = 1 + max((int(name.split(".")[1]) for name in tensors if name.startswith("blocks.")), default=-1)
    heads = described.get("model_args", {}).get("num_heads") or _HEADS.get(width)
    if not heads or not layers:
        remedy = "give model_args: {num_heads: ...} in its config.json"
        raise UserError(f"a ViT of width {width} whose number of heads is not known", where=where, remedy=remedy)
    grid = round((tensors["pos_embed"].shape[1] - 1) ** 0.5)
    licence = described.get("pretrained_cfg", {}).get("license", described.get("license"))
    return {
        "architectures": ["ViTModel"],
        "model_type": "vit",
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": tensors["blocks.0.mlp.fc1.weight"].shape[0],
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": _EPSILON,
        "image_size": grid * patch,
        "patch_size": patch,
        "num_channels": channels,
        "qkv_bias": "blocks.0.attn.qkv.bias" in tensors,
        **({"license": licence} if isinstance(licence, str) else {}),
    }


def _preprocessor(pretrained: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": config["image_size"], "width": config["image_size"]},
        "resample": _RESAMPLE.get(pretrained.get("interpolation", "bicubic"), 3),
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(pretrained.get("mean", (0.5, 0.5, 0.5))),
        "image_std": list(pretrained.get("std", (0.5, 0.5, 0.5))),
    }
