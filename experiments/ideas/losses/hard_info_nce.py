"""InfoNCE with negatives weighed by their hardness (Robinson et al. 2021; Radenovic et al. 2023, HN-NCE)."""

import torch
from pydantic import Field
from torch import Tensor

from vitcapr.config.objective import Loss, Pairs


class HardInfoNce(Loss):
    beta: float = Field(0.5, ge=0)
    """Concentration on hard negatives; 0: all negatives weigh the same, as in InfoNCE."""

    def loss(self, pairs: Pairs) -> Tensor:
        logits = pairs.similarity / pairs.temperature
        own = torch.arange(len(logits), device=logits.device)[:, None] == pairs.owners
        losses = []
        for dim in (0, 1):  # from captions to images, and back
            weights = (self.beta * logits).masked_fill(own, -torch.inf).softmax(dim) * (~own).sum(dim, keepdim=True)
            wrong = (logits + weights.clamp(min=1e-12).log()).masked_fill(own, torch.finfo(logits.dtype).min / 2)
            place = own.nonzero()[:, 1 - dim]
            losses.append(torch.nn.functional.softplus(wrong.logsumexp(dim)[place] - logits[own]).mean())
        return torch.stack(losses).mean()


LOSS = HardInfoNce
