"""Checks of every encoder when it is loaded: its vectors depend on the input alone, and its patches are row by row.

A network may draw random numbers, let a sentence see its padding, or put other tokens among the patches. transformers
says none of this in a configuration, so each loaded encoder is tried.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vitcapr.encoders.base import ImageEncoder
from vitcapr.errors import UserError

_TOLERANCE = {torch.float32: 1e-3}
_HALF_TOLERANCE = 0.1
"""Relative, of vectors in bfloat16 and float16, which depend a little on the size of the batch."""


def differ(first: Tensor, second: Tensor, dtype: torch.dtype) -> bool:
    """Whether two results of the same computation differ by more than rounding in ``dtype``. Whether they are finite is
    checked where they are stored."""
    first, second = first.float().nan_to_num(), second.float().nan_to_num()
    return not (first - second).norm() <= _TOLERANCE.get(dtype, _HALF_TOLERANCE) * first.norm()


def check_images(encoder: ImageEncoder, size: tuple[int, int], folder: Path) -> None:
    """Check that the features of a picture depend on nothing else.

    Raises:
        UserError: a picture gets other features when it is encoded again with other pictures.
    """
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
    """The layers of a transformer: its longest list of modules, or sequence of modules of one class."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList | nn.Sequential)]
    layers = [each for each in lists if isinstance(each, nn.ModuleList) or len(set(map(type, each))) == 1]
    return max(layers, key=len, default=None)


def first_patch(
    model: nn.Module, run: Callable[[Tensor], object], pixels: Tensor, grid: tuple[int, int], tokens: int
) -> int | None:
    """The place of the first patch among the tokens, measured: a change of one patch of the picture changes one token
    at the input of the first layer. With other orders than row by row, and with tokens behind the patches, -1.

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
