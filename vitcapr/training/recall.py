"""Recall@K of a validation split: what chooses an epoch. The scores that are reported come from vitcapr.metrics."""

import torch
from torch import Tensor

_AT = (1, 5, 10)
_BLOCK = 512


def recalls(images: Tensor, captions: Tensor, caption_image: Tensor) -> dict[str, float]:
    """Recall@1/5/10 in percent, both directions, and their sum, rsum (0 to 600).

    An image finds any of its captions; ties are ranked behind. Memory is bounded by 512 rows of similarities.

    Args:
        images: (N, E), captions: (M, E), of unit length.
        caption_image: (M,) int64, the image of each caption.
    """
    true = (images[caption_image] * captions).sum(1)
    best = torch.full((len(images),), -torch.inf, device=true.device).scatter_reduce(0, caption_image, true, "amax")
    to_image = torch.zeros(len(captions), dtype=torch.int64, device=true.device)
    to_caption = []
    for first in range(0, len(images), _BLOCK):
        rows = torch.arange(first, min(first + _BLOCK, len(images)), device=true.device)
        similarity = images[rows] @ captions.T
        wrong = caption_image != rows[:, None]
        to_caption.append(((similarity >= best[rows, None]) & wrong).sum(1))
        to_image += ((similarity >= true) & wrong).sum(0)
    scores = {}
    for name, before in (("i2t", torch.cat(to_caption)), ("t2i", to_image)):
        for k in _AT:
            scores[f"validation_{name}_recall_{k}"] = 100 * float((before < k).double().mean())
    return {"validation_rsum": sum(scores.values()), **scores}
