"""A Transformer decoder that knows where each patch is.

The other captioners read the patches as a set. They know a place only as far as the ViT has left it in the patch, and a
ViT that was trained with mirrored photographs hardly tells left from right.
"""

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from vitcapr.config.captioner import TransformerConfig
from vitcapr.errors import UserError
from vitcapr.models.architectures.transformer import TransformerCaptioner
from vitcapr.models.interface import Memory


class Config(TransformerConfig):
    architecture: Literal["placed_transformer"] = "placed_transformer"  # type: ignore[assignment]
    places: int = Field(ge=1)
    """Number of patches of an image."""

    def check_patches(self, patches: int) -> None:
        if patches != self.places:
            raise UserError(f"places: {self.places}, but {patches} patches are stored", remedy=f"set it to {patches}")


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


CAPTIONER = PlacedTransformer
