"""What an image encoder is, and how pixels become the arguments of a model of transformers."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from vitcapr.errors import UserError

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


class PixelArguments:
    """Makes the arguments of a model's function from pixels (B, 3, H, W)."""

    def __init__(
        self,
        function: Callable[..., Any],
        size: tuple[int, int],
        config: Any,
        patch: tuple[int, int] | None,
    ) -> None:
        takes = inspect.signature(function).parameters
        own = getattr(config, "image_size", None)
        resized = own is not None and pair(own) != size
        self.options: Mapping[str, Any] = (
            {"interpolate_pos_encoding": True} if resized and "interpolate_pos_encoding" in takes else {}
        )
        self._patch = patch if "spatial_shapes" in takes else None  # SigLIP 2 reads patches of any grid.
        self._mask = next((name for name in ("pixel_attention_mask", "attention_mask") if name in takes), "")
        self._patches = size[0] // patch[0] * (size[1] // patch[1]) if patch and "noise" in takes else 0

    def __call__(self, pixels: Tensor) -> dict[str, Any]:
        if self._patch is not None:
            rows, columns = (length // side for length, side in zip(pixels.shape[2:], self._patch, strict=True))
            cells = pixels.unflatten(3, (columns, -1)).unflatten(2, (rows, -1)).permute(0, 2, 4, 3, 5, 1)
            grid = torch.tensor([[rows, columns]] * len(pixels), device=pixels.device)
            mask = torch.ones(len(pixels), rows * columns, dtype=torch.int64, device=pixels.device)
            return {"pixel_values": cells.flatten(3).flatten(1, 2), self._mask: mask, "spatial_shapes": grid}
        inputs = {"pixel_values": pixels, **self.options}
        if self._patches:  # MAE shuffles its patches by the order of this noise.
            order = torch.arange(self._patches, device=pixels.device, dtype=torch.float32)
            inputs["noise"] = order.expand(len(pixels), -1)
        return inputs


def patch_size(config: Any, size: tuple[int, int], folder: Path) -> tuple[int, int] | None:
    """Height and width of a patch; None for a network with stages."""
    value = getattr(config, "patch_size", None)
    if value is None or hasattr(config, "depths") or hasattr(config, "hidden_sizes"):
        return None
    patch = pair(value)
    if size[0] % patch[0] or size[1] % patch[1]:
        what = f"pictures of {size[0]} x {size[1]} do not divide into patches of {patch[0]} x {patch[1]}"
        raise UserError(what, where=folder, remedy=f"set image_size to a multiple of {patch[0]}")
    return patch


def pair(value: Any) -> tuple[int, int]:
    return (int(value), int(value)) if isinstance(value, int) else (int(value[0]), int(value[1]))
