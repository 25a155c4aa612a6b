"""Top-k selection with the same order on every device."""

from torch import Tensor


def best(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Up to k largest values of each row of a short matrix, in descending order; ties by lower index."""
    ordered, indices = values.sort(dim=1, descending=True, stable=True)
    return ordered[:, :k], indices[:, :k]


def top_k(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest along the last axis, in descending order; of equal ones the lower index comes first.

    ``torch.topk`` is fast and leaves the order of equal values open, so rows in which the largest are equal are sorted.

    Args:
        values: (..., V) without NaN.
        k: at most V.

    Returns:
        values and indices (int64), both (..., k).
    """
    ordered, indices = values.topk(min(k + 1, values.shape[-1]))
    tied = (ordered[..., 1:] == ordered[..., :-1]).any(-1)
    indices = indices[..., :k]
    if tied.any():
        indices[tied] = best(values[tied], k)[1]
    return values.gather(-1, indices), indices
