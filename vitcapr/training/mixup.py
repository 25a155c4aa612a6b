"""Feature mixup: interpolated pairs, against overfitting on a few thousand pairs."""

from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from vitcapr.batches.pairs import PairBatch

B = TypeVar("B", bound=PairBatch)


def mix(batch: B, alpha: float) -> B:
    """Each image moved towards another one of the batch, and its captions by the same share towards that one's.

    Zhang et al. 2018, on features instead of pixels. The share that stays is drawn once for the batch, from
    Beta(alpha, alpha), and its larger side taken, so that a mixed pair still is the pair of its own image. Draws are
    of torch's global generator, whose state a checkpoint keeps.

    Args:
        batch: its texts are features, not words. Captions are grouped by image; the j-th of an image meets the j-th of
            the other one, counted round where that one has fewer.
        alpha: above 0; small values mix little.
    """
    images, index = len(batch.rows), batch.image_index
    share = float(torch.distributions.Beta(alpha, alpha).sample())
    share = max(share, 1 - share)
    partner = torch.randperm(images)
    counts = torch.bincount(index, minlength=images)
    begin = counts.cumsum(0) - counts
    place = torch.arange(len(index)) - begin[index]
    other = partner[index]
    caption = begin[other] + place % counts[other]
    assert isinstance(batch.texts, Tensor)
    features = {name: _between(array, array[partner], share) for name, array in batch.features.items()}
    return replace(batch, features=features, texts=_between(batch.texts, batch.texts[caption], share))


def _between(one: Tensor, other: Tensor, share: float) -> Tensor:
    """float32, whatever the store keeps: halves would round the mixture."""
    return torch.lerp(other.float(), one.float(), share)
