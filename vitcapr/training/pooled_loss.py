"""The contrastive loss of Peng 2025, equation 4, as it is written."""

import math

import torch
from torch import Tensor

from vitcapr.training.contrastive import own_captions, true_pairs


def pooled_loss(similarity: Tensor, image_index: Tensor, temperature: Tensor, shift: float | None = None) -> Tensor:
    r"""``-ln(sum of exp(true pairs / tau) / sum of exp(wrong pairs / tau)) + rho``, one logarithm for the whole batch.

    Three things set it apart from InfoNCE. True pairs are added up *inside* the logarithm, so that the gradient goes
    to those that already match best, in proportion to exp(sim / tau), and hardly to the worst. Wrong pairs are one
    pool: no caption chooses among images, and no image among captions. And the true pairs are missing from the
    denominator, so that the value is bounded not by 0 but by ``ln(N - 1) - 2 / tau`` for N pairs: rho only lifts it
    above 0 and has no gradient.

    Args:
        similarity: (B, M) float32, cosines.
        image_index: (M,) int64, the image of each caption. Captions of the same image are no wrong pairs.
        temperature: tau, a scalar.
        shift: rho; None takes the least with which no batch of this size can be negative.

    Returns:
        A scalar; 0 for the captions of a single image, which has nothing to be told from.
    """
    logits = similarity / temperature
    own = own_captions(image_index, len(logits))
    if own.all():
        return 0.0 * logits.sum()
    true = true_pairs(logits, image_index).logsumexp(0)
    wrong = logits[~own].logsumexp(0)
    rho = torch.as_tensor(least_shift(own, float(temperature.detach())) if shift is None else shift)
    return wrong - true + rho.to(logits)


def least_shift(own: Tensor, temperature: float) -> float:
    """rho such that every batch with these true pairs has a loss of at least 0: cosines reach from -1 to 1.

    ``own: (B, M)`` bool. For N images with a caption each it is ``2 / tau - ln(N - 1)``: 17.06 for the paper's 20
    pairs and tau of 0.1.
    """
    pairs, true = own.numel(), own.shape[1]
    return 2 / temperature - math.log((pairs - true) / true)
