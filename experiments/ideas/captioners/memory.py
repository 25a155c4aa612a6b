"""Patch attention that also attends to captions of the nearest training images (Ramos et al. 2023, SmallCap).

The memory is stored with the weights, so a model needs no training data. An image is no neighbour of itself.
"""

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from vitcapr.config.captioner import PatchAttentionConfig
from vitcapr.models.architectures.patch_attention import PatchAttentionCaptioner
from vitcapr.models.interface import Memory
from vitcapr.training.captioner_task import TrainingImages


class Config(PatchAttentionConfig):
    architecture: Literal["memory"] = "memory"  # type: ignore[assignment]
    images: int = Field(6000, ge=2)
    """Training images that are remembered, the first ones."""
    neighbours: int = Field(3, ge=1)
    """Nearest images whose captions are read."""


class MemoryCaptioner(PatchAttentionCaptioner):
    keys: Tensor
    texts: Tensor

    def __init__(self, *, images: int, neighbours: int, feature_dim: int, **arguments: Any) -> None:
        super().__init__(feature_dim=feature_dim, **arguments)
        self.neighbours = neighbours
        self.register_buffer("keys", torch.zeros(images, arguments.get("cls_dim") or feature_dim))
        self.register_buffer("texts", torch.zeros(images, 16, dtype=torch.int64))
        self.widen = nn.Linear(self.embedding.embedding_dim, feature_dim)

    def begin(self, images: TrainingImages) -> None:
        rows = images.captioned[: len(self.keys)]
        self.keys[: len(rows)] = normalize(torch.cat([block["cls"] for block in images.blocks(["cls"], rows)]), dim=1)
        for text, words in zip(self.texts, images.first_captions(rows), strict=False):
            text[: len(words) - 2] = words[1:-1][: len(text)]

    def encode(self, features: dict[str, Tensor]) -> Memory:
        cosines = normalize(features["cls"].float(), dim=1) @ self.keys.T
        cosines = cosines.masked_fill((cosines > 1 - 1e-4) | (self.keys == 0).all(1), -2)
        nearest = self.texts[cosines.topk(min(self.neighbours, len(self.keys)), dim=1).indices]
        words = self.widen(self.embedding(nearest.flatten(1))) * (nearest.flatten(1) > 0)[..., None]
        return super().encode({**features, "patches": torch.cat([features["patches"], words], dim=1)})


CAPTIONER = MemoryCaptioner
