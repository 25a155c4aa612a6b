"""Untrained captioners with the defaults of the configuration; the attention is that of the ViTCap-R paper."""

from typing import Any

import torch
from pydantic import TypeAdapter

from tests.models.networks import tiny_network
from vitcapr.config.experiment import AnyCaptionerConfig
from vitcapr.models.interface import Captioner, build_captioner


def configured(kind: Any, **settings: Any) -> AnyCaptionerConfig:
    """The section of a captioner."""
    if kind == "language_model":
        settings = {"language_model": {"source": "tiny"}, "train": "all", **settings}
    if kind == "patch_attention":
        settings = {"attention_dim": 256, "scoring": "tanh", "init_from_cls": False, **settings}
    config: AnyCaptionerConfig = TypeAdapter(AnyCaptionerConfig).validate_python(
        {"backbone": "vit", "architecture": kind, **settings}
    )
    return config


def architecture(kind: Any, vocabulary: int, feature_dim: int, **settings: Any) -> dict[str, Any]:
    """As a card has it. ``settings``: keys of the configuration of a captioner."""
    sizes = {"kind": kind, "vocabulary": vocabulary, "feature_dim": feature_dim}
    sizes |= {"cls_dim": settings.pop("cls_dim")} if "cls_dim" in settings else {}
    return sizes | configured(kind, **settings).described()


def untrained(
    kind: Any, vocabulary: int, feature_dim: int, seed: int = 0, network: str = "llama", **settings: Any
) -> Captioner:
    parts = {"network": tiny_network(network, vocabulary)} if kind == "language_model" else {}
    torch.manual_seed(seed)
    return build_captioner(architecture(kind, vocabulary, feature_dim, **settings), **parts)
