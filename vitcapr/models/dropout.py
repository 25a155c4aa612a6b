"""Dropout whose mask is cheap to draw on a CPU."""

import torch
from torch import Tensor, nn

_LEVELS = 1 << 16


class Dropout(nn.Module):
    """Zeros each element with probability ``p`` (to 1/65,536) while training and scales the rest by ``1 / (1 - p)``.

    torch draws one Bernoulli number an element on one thread, which takes a tenth of a training step; here a random
    64-bit word serves four elements.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return values
        words = torch.empty((values.numel() + 3) // 4, dtype=torch.int64, device=values.device)
        words.random_(torch.iinfo(torch.int64).min, None)
        draws = words.view(torch.int16)[: values.numel()].view(values.shape)
        kept = draws >= round(self.p * _LEVELS) - _LEVELS // 2
        return values * kept.to(values.dtype).mul_(1 / (1 - self.p))
