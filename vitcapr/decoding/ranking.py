"""Top-k selection with the same order on every device."""

import torch
from torch import Tensor
from torch.nn import functional

_BLOCK = 64


def best(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Up to k largest values of each row of a short matrix, in descending order; ties by lower index."""
    ordered, indices = values.sort(dim=1, descending=True, stable=True)
    return ordered[:, :k], indices[:, :k]


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
