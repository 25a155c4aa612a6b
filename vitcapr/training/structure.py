"""The STRUCTURE loss: items that are near one another in a frozen encoder's space stay so in the shared space.

Gröger et al. 2025, With Limited Data for Multimodal Alignment, Let the STRUCTURE Guide You. X (n, D) are the features
of a batch from the frozen encoder, A (n, E) their vectors in the shared space. Rows are divided by their lengths and
centred. With the temperature t of the contrastive loss

    P_X = softmax of the rows of X X' / t,    P_A = softmax of the rows of A A' / t

the loss compares L levels of neighbours, of which level l is the matrix power l:

    R(X, A) = 1/L sum_l 1/l JS(P_X^l, P_A^l)

JS is the Jensen-Shannon divergence of two rows in nats, as the mean over the rows. The order of the steps and the
weights 1/l are those of public code of the method. The numbers of the equations in the paper were not checked. Two
points differ from that code: it takes the two divergences of JS from the mean and not to it, and it raises the weight
of the loss over the first steps.
"""

import torch
from torch import Tensor

_LEAST = 1e-12
"""The logarithm of a smaller probability is that of this one."""


def structure_loss(original: Tensor, aligned: Tensor, temperature: Tensor, levels: int) -> Tensor:
    """R(X, A) for ``original`` X (n, D) and ``aligned`` A (n, E), float32: a scalar of at least 0.

    Args:
        temperature: t; a scalar, through which no gradient flows.
        levels: L, at least 1.
    """
    before, after = (_neighbours(rows, temperature.detach()) for rows in (original, aligned))
    first, second = before, after
    total = _jensen_shannon(first, second)
    for level in range(2, levels + 1):
        first, second = first @ before, second @ after
        total = total + _jensen_shannon(first, second) / level
    return total / levels


def _neighbours(rows: Tensor, temperature: Tensor) -> Tensor:
    """For each row, how near every row is: (n, n), rows that sum to 1."""
    rows = torch.nn.functional.normalize(rows, dim=1)
    rows = rows - rows.mean(0)
    return torch.softmax(rows @ rows.T / temperature, dim=1)


def _jensen_shannon(p: Tensor, q: Tensor) -> Tensor:
    mean = ((p + q) / 2).clamp(min=_LEAST).log()
    each = (p * (p.clamp(min=_LEAST).log() - mean) + q * (q.clamp(min=_LEAST).log() - mean)) / 2
    return each.sum(1).mean()
