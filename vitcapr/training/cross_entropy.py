"""Cross-entropy with label smoothing that goes over the logits once forward and once backward.

torch's own keeps the log-probabilities and builds two gradients of the logits' size to add them up; with words by
vocabulary such a tensor is larger than the caches, and going over it costs more than the arithmetic.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

_CHUNK_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 27}


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The mean of ``torch.nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing)``.

    Args:
        logits: (n, V) floating point.
        targets: (n,) int64, the classes.
        smoothing: share of each target spread evenly over all V classes, 0 to 1.

    Returns:
        A number in nats, differentiable once with respect to ``logits``.
    """
    return _SmoothedCrossEntropy.apply(logits, targets, smoothing)  # type: ignore[no-any-return]


def _chunks(logits: Tensor) -> Iterator[slice]:
    """Rows that fit the cache."""
    rows = max(1, _CHUNK_ELEMENTS.get(logits.device.type, _CHUNK_ELEMENTS["cpu"]) // logits.shape[1])
    for first in range(0, len(logits), rows):
        yield slice(first, first + rows)


class _SmoothedCrossEntropy(torch.autograd.Function):
    """With x the logits: log sum exp(x) - (1 - s) x[target] - s mean(x), and its derivative."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        normalisers, means = logits.new_empty(len(logits)), logits.new_empty(len(logits))
        for rows in _chunks(logits):
            torch.logsumexp(logits[rows], 1, out=normalisers[rows])
            torch.mean(logits[rows], 1, out=means[rows])
        ctx.save_for_backward(logits, targets, normalisers)
        ctx.smoothing = smoothing
        expected = logits.gather(1, targets[:, None])[:, 0]
        return (normalisers - (1 - smoothing) * expected - smoothing * means).mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        logits, targets, normalisers = ctx.saved_tensors
        scale = gradients[0] / len(logits)
        for_logits = torch.empty_like(logits)
        for rows in _chunks(logits):
            part = torch.sub(logits[rows], normalisers[rows, None], out=for_logits[rows]).exp_()
            part.sub_(ctx.smoothing / logits.shape[1]).mul_(scale)
        for_logits[torch.arange(len(logits), device=logits.device), targets] -= (1 - ctx.smoothing) * scale
        return for_logits, None, None
