"""The loss of SigLIP with a learned bias (Zhai et al. 2023), with a mean over pairs in place of their sum."""

from typing import ClassVar

import torch
from torch import Tensor

from vitcapr.config.objective import Loss, Pairs


class SigLip(Loss):
    start_bias: ClassVar[float | None] = -10.0

    def loss(self, pairs: Pairs) -> Tensor:
        own = torch.arange(len(pairs.images), device=pairs.owners.device)[:, None] == pairs.owners
        logits = pairs.similarity / pairs.temperature + pairs.bias
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, own.to(logits.dtype))


LOSS = SigLip
