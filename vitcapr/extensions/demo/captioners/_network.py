"""The network of the captioner that knows where each patch is."""

from typing import Any

import torch
from torch import Tensor, nn

from vitcapr.models.architectures.transformer import TransformerCaptioner
from vitcapr.models.interface import Memory


class PlacedTransformer(TransformerCaptioner):
    """A Transformer decoder with a learned vector for each place, added to its patch.

    Args:
        places: P, number of patches of an image.
        feature_dim: D, the width of the stored patches.
        arguments: those of ``TransformerCaptioner``.
    """

    def __init__(self, *, places: int, feature_dim: int, **arguments: Any) -> None:
        super().__init__(feature_dim=feature_dim, **arguments)
        self.places = nn.Parameter(torch.randn(places, feature_dim))

    def encode(self, features: dict[str, Tensor]) -> Memory:
        return super().encode({"patches": features["patches"] + self.places})
