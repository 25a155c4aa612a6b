"""InfoNCE with the two consistency terms of CyCLIP (Goel et al. 2022): similarities across and within modalities agree.

The terms compare one caption of each image, the first of the batch.
"""

import torch
from pydantic import Field
from torch import Tensor

from vitcapr.config.objective import Loss, Pairs
from vitcapr.training.contrastive import info_nce


class CyClip(Loss):
    cross: float = Field(0.25, ge=0)
    """Weight of the consistency across modalities: image to caption and caption to image."""
    within: float = Field(0.25, ge=0)
    """Weight of the consistency within modalities: images among each other, and captions."""

    def loss(self, pairs: Pairs) -> Tensor:
        index = torch.arange(len(pairs.images), device=pairs.owners.device)
        first = (pairs.owners == index[:, None]).int().argmax(1)
        captions = pairs.captions[first]
        across = pairs.images @ captions.T
        cross = (across - across.T).square().mean()
        within = (pairs.images @ pairs.images.T - captions @ captions.T).square().mean()
        loss = info_nce(pairs.similarity, pairs.owners, pairs.temperature)
        return loss + (self.cross * cross + self.within * within) / pairs.temperature


LOSS = CyClip
