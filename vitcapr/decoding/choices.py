"""Which words may come next, and which of them are the best."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

_BLOCK = 64


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


def top_k(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest along the last axis, in descending order; of equal ones the lower index comes first.

    ``torch.topk`` leaves the order of equal values open, so this ranks unique integers made of value and index. Only
    the blocks with the k largest maxima are ranked, since no other can hold one of the k largest values.

    Args:
        values: (..., V) float32 without NaN.
        k: at most V.

    Returns:
        values and indices (int64), both (..., k).
    """
    size = values.shape[-1]
    blocks = -(-size // _BLOCK)
    if blocks <= k:
        indices = _rank(values, torch.arange(size, device=values.device).expand(values.shape), k)
        return values.gather(-1, indices), indices
    blocked = functional.pad(values, (0, blocks * _BLOCK - size), value=-torch.inf).unflatten(-1, (blocks, _BLOCK))
    maxima = blocked.amax(-1)
    best = _rank(maxima, torch.arange(blocks, device=values.device).expand(maxima.shape), k)
    within = best[..., None] * _BLOCK + torch.arange(_BLOCK, device=values.device)
    kept = blocked.gather(-2, best[..., None].expand(*best.shape, _BLOCK))
    indices = _rank(kept.flatten(-2), within.flatten(-2), k)
    # Padding follows every real index, so it is chosen only where fewer than k values exist, which k <= V rules out.
    return values.gather(-1, indices), indices


def _rank(values: Tensor, indices: Tensor, k: int) -> Tensor:
    """The ``indices`` of the k largest values, equal values by ascending index."""
    # Adding zero turns -0.0 into 0.0, its equal. The bits of a float32, read as an integer, order as the floats do
    # once the magnitude bits of negative numbers are flipped.
    bits = (values + 0.0).view(torch.int32)
    ordered = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long()
    keys = (ordered << 32) | (0xFFFFFFFF - indices)
    return 0xFFFFFFFF - (keys.topk(k, dim=-1).values & 0xFFFFFFFF)
