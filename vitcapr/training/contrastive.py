"""Losses that bring an image and its captions together and keep other pairs apart.

The contrastive losses take the similarities of a batch of B images and their M captions. Captions of the same image are
not compared: where one of them is the positive, the others are left out, never counted as negatives.
"""

import math
from typing import Literal

import torch
from torch import Tensor

_LOWEST = torch.finfo(torch.float32).min / 2
"""Value of an excluded similarity. A finite number has a gradient of zero and not NaN."""
_LEAST = 1e-12
"""Smallest probability whose logarithm is taken; smaller ones are raised to it."""


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
    """Return the sum over wrong captions j of ``max(0, margin - true score + score of j)``, mean over captions.

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


def mined_loss(
    similarity: Tensor, image_index: Tensor, temperature: Tensor, rule: Literal["second", "hardest"]
) -> Tensor:
    """Return the hard negative of each true pair, and the binary cross-entropy of the choice between the two.

    ViTCap-R (section III.E.2) takes, for each image, the two captions most similar to it and of these the second: the
    first is expected to be the true one. It doesn't say what becomes of the choice where the true caption is not the
    first, nor how the hard negative enters the loss. Here:

    - The image's other captions are left out: the two are the best of the true caption and other images' captions.
    - If the second is the true caption itself, the pair has no hard negative: it must not be pushed away.
    - The loss is the mean over the true pairs of ``-log sigmoid((true - hard) / temperature)``; 0 for a pair without a
      hard negative.

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
    has_hard = hard > -torch.inf
    gap = torch.where(has_hard, hard, pairs) - pairs
    return torch.where(has_hard, torch.nn.functional.softplus(gap / temperature), 0.0).mean()


def pooled_loss(similarity: Tensor, image_index: Tensor, temperature: Tensor) -> Tensor:
    r"""``-ln(sum of exp(positives / tau) / sum of exp(negatives / tau)) + rho``: Peng 2025, equation 4.

    It differs from InfoNCE in three points. Positives are added up *inside* the logarithm, so that the gradient goes to
    those that already match best, in proportion to exp(sim / tau). Negatives are one pool: no caption chooses among
    images, and no image among captions. And the positives are missing from the denominator, so that the value is
    bounded not by 0 but by ``ln(N - 1) - 2 / tau`` for N pairs. rho has no gradient; it is the least with which no
    batch of this size can be negative.

    Args:
        similarity: (B, M) float32, cosines.
        image_index: (M,) int64, the image of each caption. Captions of the same image are no wrong pairs.
        temperature: tau, a scalar.

    Returns:
        A scalar; 0 for the captions of a single image, which have no negatives.
    """
    logits = similarity / temperature
    own = own_captions(image_index, len(logits))
    if own.all():
        return 0.0 * logits.sum()
    true = true_pairs(logits, image_index).logsumexp(0)
    wrong = logits[~own].logsumexp(0)
    rho = torch.as_tensor(least_shift(own, float(temperature.detach())))
    return wrong - true + rho.to(logits)


def least_shift(own: Tensor, temperature: float) -> float:
    """Rho such that every batch with these true pairs has a loss of at least 0: cosines reach from -1 to 1.

    ``own: (B, M)`` bool. For N images with a caption each it is ``2 / tau - ln(N - 1)``: 17.06 for the paper's 20
    pairs and tau of 0.1.
    """
    pairs, true = own.numel(), own.shape[1]
    return 2 / temperature - math.log((pairs - true) / true)


def structure_loss(original: Tensor, aligned: Tensor, temperature: Tensor) -> Tensor:
    """Return the STRUCTURE loss, which preserves the neighbourhoods of frozen spaces in the shared space.

    Gröger et al. 2025, With Limited Data for Multimodal Alignment, Let the STRUCTURE Guide You. X (n, D) are the
    features of a batch from the frozen encoder, A (n, E) their vectors in the shared space. Rows are divided by their
    lengths and centred. With the temperature t of the contrastive loss

        P_X = softmax of the rows of X X' / t,    P_A = softmax of the rows of A A' / t

    the loss is JS(P_X, P_A), the Jensen-Shannon divergence of two rows in nats, as the mean over the rows: the first
    level of the method, which can compare further neighbours as well. The order of the steps is that of public code of
    the method; the equations of the paper were not checked. Two points differ from that code: it takes the two
    divergences of JS from the mean and not to it, and it raises the weight of the loss over the first steps.

    Args:
        original, aligned: X and A, float32.
        temperature: t; a scalar, through which no gradient flows.

    Returns:
        A scalar of at least 0.
    """
    return _jensen_shannon(*(_neighbours(rows, temperature.detach()) for rows in (original, aligned)))


def _neighbours(rows: Tensor, temperature: Tensor) -> Tensor:
    """Return the similarity of every row to each row as shares: (n, n), rows that sum to 1."""
    rows = torch.nn.functional.normalize(rows, dim=1)
    rows = rows - rows.mean(0)
    return torch.softmax(rows @ rows.T / temperature, dim=1)


def _jensen_shannon(p: Tensor, q: Tensor) -> Tensor:
    mean = ((p + q) / 2).clamp(min=_LEAST).log()
    each = (p * (p.clamp(min=_LEAST).log() - mean) + q * (q.clamp(min=_LEAST).log() - mean)) / 2
    return each.sum(1).mean()
