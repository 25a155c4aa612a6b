"""Cross-entropy with labels smoothed towards the words of the batch (Szegedy et al. 2016, section 7, with their u)."""

import torch
from pydantic import Field
from torch import Tensor

from vitcapr.config.objective import CaptionerLoss, Words


class UnigramSmoothing(CaptionerLoss):
    share: float = Field(0.1, ge=0, lt=1)
    """Share of a target's probability that is spread over the words of the batch, by their frequency."""

    def loss(self, words: Words) -> Tensor:
        log_probs = words.logits.log_softmax(1)
        frequency = torch.bincount(words.targets, minlength=log_probs.shape[1]) / len(words.targets)
        own = log_probs.gather(1, words.targets[:, None])[:, 0]
        return -((1 - self.share) * own + self.share * (log_probs @ frequency)).mean()


LOSS = UnigramSmoothing
