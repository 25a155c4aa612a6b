"""InfoNCE and the similarities of a trained retriever as soft targets (Hinton et al. 2015; Wu et al. 2023, TinyCLIP).

The targets of an image are the teacher's cosines with the mean caption of each image of the batch.
"""

from functools import cache
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import kl_div, normalize

from vitcapr.config.base import DATA, UserPath
from vitcapr.config.objective import Loss, Pairs
from vitcapr.training.contrastive import info_nce


class Distillation(Loss):
    teacher: Annotated[UserPath, DATA]
    """embeddings.npz of the training split by the teacher."""
    weight: float = Field(1.0, ge=0)
    """Weight of the soft targets."""
    temperature: float = Field(0.05, gt=0)
    """Temperature of the soft targets."""

    def loss(self, pairs: Pairs) -> Tensor:
        images, captions = (vectors[pairs.rows.cpu()].to(pairs.images.device) for vectors in teacher(self.teacher))
        targets = ((images @ captions.T)[:, pairs.owners] / self.temperature).softmax(1)
        soft = kl_div((pairs.similarity / pairs.temperature).log_softmax(1), targets, reduction="batchmean")
        return info_nce(pairs.similarity, pairs.owners, pairs.temperature) + self.weight * soft


@cache
def teacher(path: str) -> tuple[Tensor, Tensor]:
    """Return the teacher's images and mean captions, (N, E) each, by their rows; rows of other splits are 0."""
    found = np.load(path)
    rows, owners = torch.from_numpy(found["image_row"]).long(), torch.from_numpy(found["caption_image"]).long()
    images = torch.zeros(int(rows.max()) + 1, found["images"].shape[1])
    captions = images.index_add(0, rows[owners], torch.from_numpy(found["captions"]))
    return images.index_copy(0, rows, torch.from_numpy(found["images"])), normalize(captions, dim=1)


LOSS = Distillation
