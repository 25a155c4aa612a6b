"""InfoNCE at nested widths (Kusupati et al. 2022, Matryoshka Representation Learning): prefixes are embeddings, too."""

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from vitcapr.config.objective import Loss, Pairs
from vitcapr.training.contrastive import info_nce


class Matryoshka(Loss):
    widths: list[int] = Field([32, 64, 128], min_length=1)
    """Widths of the prefixes; the loss of the whole embedding is always added."""

    def loss(self, pairs: Pairs) -> Tensor:
        losses = [info_nce(pairs.similarity, pairs.owners, pairs.temperature)]
        for width in self.widths:
            images, captions = normalize(pairs.images[:, :width], dim=1), normalize(pairs.captions[:, :width], dim=1)
            losses.append(info_nce(images @ captions.T, pairs.owners, pairs.temperature))
        return torch.stack(losses).mean()


LOSS = Matryoshka
