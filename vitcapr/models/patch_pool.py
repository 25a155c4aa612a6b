"""The patches of an image pooled by a few queries and as their mean, in one walk over the halves that a store holds.

In float32 the patches of a batch are tens of megabytes, and every operation on all of them waits for the memory. Here
a few images at a time are converted, and are still in the cache when the last product of theirs is taken.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

_CACHED = 1 << 20
"""Bytes of patches in float32 that a core's cache holds."""


def pool_patches(patches: Tensor, queries: Tensor, mean: bool) -> Tensor:
    """Each query's sum of the patches, weighted by the softmax of their products with it; then their mean, if asked.

    In float32, whatever the patches are and whether autocast is on. The gradient reaches the queries alone, and costs a
    second walk.

    Args:
        patches: (B, P, D).
        queries: (Q, D) float32; Q may be 0.

    Returns:
        (B, Q + 1, D), or (B, Q, D) without the mean.
    """
    pooled: Tensor = _Pool.apply(patches, queries, mean)
    return pooled


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, patches: Tensor, queries: Tensor, mean: bool) -> Tensor:
        images, places, width = patches.shape
        weights = queries.new_full((images, len(queries) + mean, places), 1 / places)
        pooled = queries.new_empty(images, len(queries) + mean, width)
        with torch.autocast(patches.device.type, enabled=False):
            for some, its_weights, its_pooled in _walk(patches, weights, pooled):
                if len(queries):
                    scores = torch.bmm(queries.expand(len(some), -1, -1), some.transpose(1, 2))
                    its_weights[:, : len(queries)] = torch.softmax(scores, dim=2)
                torch.bmm(its_weights, some, out=its_pooled)
        ctx.save_for_backward(patches, weights[:, : len(queries)])
        return pooled

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None]:
        patches, weights = ctx.saved_tensors
        of_queries = gradient.new_zeros(weights.shape[1], patches.shape[2])
        with torch.autocast(patches.device.type, enabled=False):
            for some, its_weights, its_gradient in _walk(patches, weights, gradient[:, : len(of_queries)]):
                of_scores = its_weights * torch.bmm(its_gradient, some.transpose(1, 2))
                of_scores -= its_weights * of_scores.sum(2, keepdim=True)
                of_queries += torch.bmm(of_scores, some).sum(0)
        return None, of_queries, None


def _walk(patches: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """The patches in float32, a few images at a time, and the others' rows of these; on a GPU all at once."""
    few = len(patches) if patches.is_cuda else _CACHED // (4 * patches[:1].numel() or 1)
    parts = [tensor.split(max(1, few)) for tensor in (patches, *others)]
    for some, *of_others in zip(*parts, strict=True):
        yield some.float(), *of_others
