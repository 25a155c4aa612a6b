"""Cross-entropy and the unlikelihood of words that the caption already has (Welleck et al. 2020, equation 4)."""

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from vitcapr.config.objective import CaptionerLoss, Words


class Unlikelihood(CaptionerLoss):
    weight: float = Field(1.0, ge=0)
    """Weight of the unlikelihood."""

    def loss(self, words: Words) -> Tensor:
        captions, steps = words.mask.to(words.tokens.device).nonzero(as_tuple=True)
        length = words.tokens.shape[1]
        before = torch.arange(length, device=captions.device) <= steps[:, None]
        read = torch.where(before, words.tokens[captions], 0)
        repeats = torch.zeros_like(words.logits, dtype=torch.bool).scatter(1, read, True)
        repeats[:, 0] = False
        repeats = repeats.scatter(1, words.targets[:, None], False)
        chance = words.logits.softmax(1)[repeats].clamp(max=1 - 1e-5)
        unlikely = -torch.log1p(-chance).sum() / len(words.targets)
        return cross_entropy(words.logits, words.targets) + self.weight * unlikely


LOSS = Unlikelihood
