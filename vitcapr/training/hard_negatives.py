"""Hard negatives: the negative captions most similar to an image, mined in the batch.

ViTCap-R (section III.E.2) takes, for each image, the two captions most similar to it and of these the second: the first
is expected to be the true one. It doesn't say what becomes of the choice where the true caption is not the first, nor
how the hard negative enters the loss. Here:

- The image's other captions are left out, so the two are the best among the true caption and other images' captions.
- If the second is the true caption itself, the pair has no hard negative: it must not be pushed away.
- The loss of a pair is the binary cross-entropy of the choice between its caption and the hard negative, at the
  temperature of the contrastive loss, to which it is added with a weight.
"""

from typing import Literal

import torch
from torch import Tensor

from vitcapr.training.contrastive import own_captions, true_pairs

Rule = Literal["second", "hardest"]


def mined_loss(similarity: Tensor, image_index: Tensor, temperature: Tensor, rule: Rule) -> Tensor:
    """The mean over the true pairs of ``-log sigmoid((true - hard) / temperature)``; 0 for a pair without one.

    Args:
        similarity: (B, M) float32, the batch's images and captions.
        image_index: (M,) int64, the image of each caption.
        rule: ``second`` is the paper's; ``hardest`` is the most similar wrong caption, wherever the true one stands.
    """
    pairs = true_pairs(similarity, image_index)
    wrong = similarity.masked_fill(own_captions(image_index, len(similarity)), -torch.inf)
    top = wrong.topk(min(2, wrong.shape[1]), dim=1).values
    first, second = top[:, 0][image_index], top[:, -1][image_index]
    if rule == "second":
        nothing = torch.full_like(first, -torch.inf)
        hard = torch.where(pairs >= first, first, torch.where(pairs >= second, nothing, second))
    else:
        hard = first
    found = hard > -torch.inf
    gap = torch.where(found, hard, pairs) - pairs
    return torch.where(found, torch.nn.functional.softplus(gap / temperature), 0.0).mean()
