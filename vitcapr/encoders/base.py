"""What an image encoder is."""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

NO_GRID = (0, 0)


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
