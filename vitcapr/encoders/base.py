"""What an image encoder is, and the kinds of checkpoints that have one.

- ``hidden``: the last layer: a CLS vector and a vector for each patch. For a convolutional network: the pooled output
  and a vector for each position of the last feature map.
- ``aligned``: the vector in the space shared with captions, of CLIP, SigLIP or BLIP-2's image-text contrastive head
  (J. Li et al. 2023, section 3.1).
- ``qformer``: BLIP-2's query tokens before any projection.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

import torch
from torch import Tensor

Kind = Literal["auto", "vit", "cnn", "clip", "siglip", "blip-2"]
Output = Literal["hidden", "aligned", "qformer"]
Pool = Literal["mean", "max", "first"]
Patches = Literal["all", "none"] | int

OUTPUTS: Mapping[str, tuple[Output, ...]] = {
    "vit": ("hidden",),
    "cnn": ("hidden",),
    "clip": ("hidden", "aligned"),
    "siglip": ("hidden", "aligned"),
    "blip-2": ("hidden", "aligned", "qformer"),
}
NO_GRID = (0, 0)
CONVOLUTIONAL = frozenset({"resnet", "regnet", "convnext", "convnextv2", "mobilenet_v1", "mobilenet_v2", "bit"})
"""Model types that return a feature map (B, D, h, w) and its pooled vector."""


class ImageEncoder(Protocol):
    """Computes the arrays of a store, with B rows each, from pixels ``(B, 3, H, W)``.

    Attributes:
        model: the network, frozen and in evaluation mode.
        grid: rows and columns of patches; (0, 0) if ``patches`` have no position in the image.
        shapes: the shape of a row of each array.
    """

    dtype: torch.dtype
    device: torch.device
    grid: tuple[int, int]

    @property
    def model(self) -> torch.nn.Module: ...

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]: ...

    def features(self, pixels: Tensor) -> dict[str, Tensor]: ...
