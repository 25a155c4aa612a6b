"""Decoupled InfoNCE (Yeh et al. 2022, Decoupled Contrastive Learning): the positive is missing from the denominator."""

import torch
from torch import Tensor

from vitcapr.config.objective import Loss, Pairs


class Dcl(Loss):
    def loss(self, pairs: Pairs) -> Tensor:
        logits = pairs.similarity / pairs.temperature
        own = torch.arange(len(logits), device=logits.device)[:, None] == pairs.owners
        positive = logits[own]
        wrong = logits.masked_fill(own, torch.finfo(logits.dtype).min / 2)
        images = own.nonzero()[:, 0]
        to_caption = wrong.logsumexp(1)[images] - positive
        to_image = wrong.logsumexp(0)[own.nonzero()[:, 1]] - positive
        return (to_caption + to_image).mean() / 2


LOSS = Dcl
