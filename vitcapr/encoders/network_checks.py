"""Interface of image encoders, the arguments of transformers' models, and checks of every encoder.

A network may draw random numbers, let a sentence see its padding, or put other tokens among the patches. transformers
says none of this in a configuration, so each encoder is tried when it is loaded.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from vitcapr.errors import UserError

NO_GRID = (0, 0)
_TOLERANCE = {torch.float32: 1e-3}
_HALF_TOLERANCE = 0.1
"""Relative, of vectors in bfloat16 and float16, which depend a little on the size of the batch."""


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


def differ(first: Tensor, second: Tensor, dtype: torch.dtype) -> bool:
    """Return whether two results of one computation differ by more than rounding in ``dtype``.

    Finiteness is checked where results are stored.
    """
    first, second = first.float().nan_to_num(), second.float().nan_to_num()
    return not (first - second).norm() <= _TOLERANCE.get(dtype, _HALF_TOLERANCE) * first.norm()


def check_images(encoder: ImageEncoder, size: tuple[int, int], folder: Path) -> None:
    """Check that a picture gets the same features when it is encoded with other pictures."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randn(3, 3, *size, generator=generator).to(encoder.device, encoder.dtype)
    alone, among = encoder.features(pixels[1:2]), encoder.features(pixels)
    for name, array in alone.items():
        if differ(array, among[name][1:2], encoder.dtype):
            what = f"a picture gets other {name} when it is encoded again with other pictures"
            raise UserError(
                what, where=folder, remedy="use a network that draws no random numbers and mixes no pictures"
            )


def check_sentences(encode: Callable[[Sequence[str]], np.ndarray], dtype: torch.dtype, folder: Path) -> None:
    """Check that the vector of a sentence does not depend on the longer sentences of its batch.

    Args:
        encode: sentences to vectors (n, D), two of them in one batch.

    Raises:
        UserError: it depends on them.
    """
    short, long = "a dog", "two dogs and a cat run over the green grass behind a house"
    alone, among = (torch.from_numpy(encode(texts)[-1]) for texts in ([short], [long, short]))
    if differ(alone, among, dtype):
        what = "the vector of a sentence depends on the length of its batch, because the model does not mask padding"
        raise UserError(what, where=folder, remedy="use another text encoder")


def blocks(model: nn.Module) -> nn.ModuleList | nn.Sequential | None:
    """Return the layers of a transformer: its longest list of modules, or sequence of modules of one class."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList | nn.Sequential)]
    layers = [each for each in lists if isinstance(each, nn.ModuleList) or len(set(map(type, each))) == 1]
    return max(layers, key=len, default=None)


def first_patch(
    model: nn.Module, run: Callable[[Tensor], object], pixels: Tensor, grid: tuple[int, int], tokens: int
) -> int | None:
    """Measure the place of the first patch among the tokens.

    A change of one patch of the picture changes one token at the input of the first layer. The place is -1 for patches
    that are not ordered row by row, or that other tokens follow.

    Args:
        run: runs the model.
        pixels: (1, 3, H, W), of the grid's rows and columns of patches.
        tokens: number of tokens of the output.

    Returns:
        None: the input of the first layer does not have as many tokens as the output.
    """
    layers, inputs = blocks(model), []
    if layers is None:
        return None
    hook = layers[0].register_forward_pre_hook(
        lambda _, args, kwargs: inputs.append(_tokens(args, kwargs)), with_kwargs=True
    )
    rows, columns = grid
    height, width = pixels.shape[2] // rows, pixels.shape[3] // columns
    chosen = sorted({0, columns - 1, columns * (rows - 1), rows * columns - 1})
    changed = pixels.repeat(len(chosen) + 1, 1, 1, 1)
    for index, patch in enumerate(chosen, 1):
        top, left = patch // columns * height, patch % columns * width
        changed[index, :, top : top + height, left : left + width] += 2
    run(changed)
    hook.remove()
    hidden = inputs[0] if inputs else None
    if hidden is None or hidden.shape[0] * hidden.shape[1] != len(changed) * tokens:
        return None
    hidden = hidden.reshape(len(changed), tokens, -1).float()
    places = (hidden[1:] - hidden[:1]).norm(dim=2).argmax(1) - torch.tensor(chosen, device=hidden.device)
    first = int(places[0])
    return first if (places == first).all() and first + rows * columns == tokens else -1


def _tokens(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor) and value.ndim == 3]
    return tensors[0] if tensors else None
