"""Losses that bring an image and its captions together and keep other pairs apart.

All take the similarities of a batch of B images and their M captions. Captions of the same image are not told apart:
where one of them is the true caption, the others are left out of the comparison, never counted as wrong.
"""

import torch
from torch import Tensor

_LOWEST = torch.finfo(torch.float32).min / 2
"""Replaces an excluded similarity. It is finite, so that the gradient is zero and not NaN."""


def own_captions(image_index: Tensor, images: int) -> Tensor:
    """(B, M) bool: the caption belongs to the image. image_index: (M,) int64, from 0 to B-1."""
    return torch.arange(images, device=image_index.device)[:, None] == image_index


def true_pairs(similarity: Tensor, image_index: Tensor) -> Tensor:
    """(M,): the similarity of each caption and its image."""
    return similarity[image_index, torch.arange(len(image_index), device=similarity.device)]


def info_nce(similarity: Tensor, image_index: Tensor, temperature: Tensor) -> Tensor:
    """Symmetric InfoNCE in nats: half the sum of both directions, each a mean over all positives.

    From a caption it is a choice among the B images; from an image, for each of its captions, a choice among that
    caption and those of the other images. With one caption an image this is the loss of CLIP (Radford et al. 2021).

    Args:
        similarity: (B, M) float32, cosines.
        image_index: (M,) int64, the image of each caption.
        temperature: a scalar; similarities are divided by it.
    """
    logits = similarity / temperature
    pairs = true_pairs(logits, image_index)
    others = logits.masked_fill(own_captions(image_index, len(logits)), _LOWEST).logsumexp(1)
    to_caption = torch.nn.functional.softplus(others[image_index] - pairs).mean()
    to_image = torch.nn.functional.cross_entropy(logits.T, image_index)
    return (to_caption + to_image) / 2


def max_hinge(similarity: Tensor, image_index: Tensor, margin: float) -> Tensor:
    """Hinge loss of every positive against the hardest negative caption and the hardest negative image.

    Faghri et al. 2018 (VSE++), equation 6, as the mean over the pairs instead of the sum.

    Args:
        similarity: (B, M) float32, cosines.
        image_index: (M,) int64, the image of each caption.
    """
    pairs = true_pairs(similarity, image_index)
    wrong = similarity.masked_fill(own_captions(image_index, len(similarity)), _LOWEST)
    caption = torch.relu(margin + wrong.amax(1)[image_index] - pairs)
    image = torch.relu(margin + wrong.amax(0) - pairs)
    return (caption + image).mean()


def sigmoid(similarity: Tensor, image_index: Tensor, temperature: Tensor, bias: Tensor) -> Tensor:
    """Binary classification of every image-caption pair of the batch as positive or negative.

    Zhai et al. 2023 (SigLIP), equation 1: ``-log sigmoid(z * (similarity / temperature + bias))``, z = 1 for a true
    pair and -1 otherwise, summed over all B x M and divided by the number of true pairs. All captions of an image are
    true pairs of it, so that no caption is ever counted as wrong for its own image.

    Args:
        similarity: (B, M) float32, cosines.
        image_index: (M,) int64, the image of each caption.
        temperature, bias: scalars, learned; the bias starts low, since nearly all pairs are wrong ones.
    """
    logits = similarity / temperature + bias
    signs = own_captions(image_index, len(logits)).to(logits.dtype) * 2 - 1
    return torch.nn.functional.softplus(-signs * logits).sum() / len(image_index)


def hinge_rank(scores: Tensor, image_index: Tensor, margin: float) -> Tensor:
    """The sum over wrong captions j of ``max(0, margin - score of the true one + score of j)``, the mean over captions.

    Frome et al. 2013 (DeViSE), equation 1: from an image to captions alone. They stop at the first caption that breaks
    the margin; here all of the batch count.

    Args:
        scores: (B, M) float32, the dot product of an image's mapped features and a caption's vector of length 1.
        image_index: (M,) int64, the image of each caption.
    """
    true = true_pairs(scores, image_index)
    own = own_captions(image_index, len(scores))[image_index]
    broken = torch.relu(margin - true[:, None] + scores[image_index]).masked_fill(own, 0.0)
    return broken.sum(1).mean()
