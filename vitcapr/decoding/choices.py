"""Which words may come next."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def next_log_probs(logits: Tensor, forbidden: Sequence[int]) -> Tensor:
    """The model's own log-probabilities, those of ``forbidden`` tokens replaced by minus infinity.

    The others are not renormalised: a log-probability means the same under every setting of the search.

    Args:
        logits: (..., V) float32.

    Returns:
        (..., V) float32, a new tensor.
    """
    log_probs = functional.log_softmax(logits, dim=-1)
    for token in forbidden:
        log_probs[..., token] = -torch.inf
    return log_probs


def block_repeats(log_probs: Tensor, history: Tensor, size: int) -> Tensor:
    """Forbid, in place, every word that would repeat an n-gram of the caption so far.

    Args:
        log_probs: (B, K, V).
        history: (B, K, T) int64, the words so far, start excluded.
        size: the n of the n-gram; 1 forbids every word used before.

    Returns:
        ``log_probs``.
    """
    length = history.shape[2]
    if length < size:
        return log_probs
    grams = history.unfold(2, size, 1)
    last = history[:, :, length - size + 1 :]
    begun = (grams[..., :-1] == last[:, :, None]).all(-1)
    images, hypotheses, positions = begun.nonzero(as_tuple=True)
    log_probs[images, hypotheses, grams[images, hypotheses, positions, -1]] = -torch.inf
    return log_probs
