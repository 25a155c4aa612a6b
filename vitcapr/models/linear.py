"""Linear layers on the words of a batch, whose number is another in every batch."""

import torch
from torch import Tensor, nn

_ROWS = 128
"""The number of rows is rounded up to a multiple of this."""


class WordLinear(nn.Linear):
    """``torch.nn.Linear``, by :func:`word_linear`."""

    def forward(self, input: Tensor) -> Tensor:
        return word_linear(input, self.weight, self.bias)


def word_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``torch.nn.functional.linear``, which rounds the number of rows up where bfloat16 is used on a CPU.

    There, oneDNN compiles a product for every number of rows that it has not seen: a quarter of the time of a training
    step. The rows that are added are zeros, and are left out of the result.

    Args:
        input: (..., D).
        weight: (E, D); bias: (E,).

    Returns:
        (..., E).
    """
    missing = -(input.numel() // input.shape[-1]) % _ROWS
    if not missing or input.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return nn.functional.linear(input, weight, bias)
    rows = nn.functional.pad(input.flatten(0, -2), (0, 0, 0, missing))
    found = nn.functional.linear(rows, weight, bias)[: len(rows) - missing]
    return found.view(*input.shape[:-1], len(weight))
