"""Attention scores of words and patches: additive and bilinear.

``w^T tanh(W_v v_i + W_h h_t + b)`` needs a number for every word, patch and unit. The plain formula keeps these tensors
of the whole batch for the backward pass. On a CPU, they are made for a few words of an image at a time, which fit the
cache, and once more in the backward pass: a training step takes half of the time.
"""

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor

Scoring = Literal["tanh", "relu", "bilinear"]

_WORDS = 8
"""Words of an image whose pairs with its patches are computed together."""
_LARGEST_EXPONENT = 20.0
"""tanh is 1 to the last bit of a float32 beyond 10; clamping here keeps the product of two exponentials finite."""


def patch_scores(patches: Tensor, words: Tensor, weight: Tensor, counts: Tensor, scoring: Scoring) -> Tensor:
    """The attention score of each word and each patch (ViTCap-R, equation 2, before the softmax).

    Args:
        patches: ``W_v v + b``, (B, P, A) float32.
        words: ``W_h h``, (B, N, A) float32, the words of all captions of an image side by side.
        weight: ``w``, (A,) float32.
        counts: (B,) int64, how many of the N words of each image are real; the scores of the others mean nothing.
        scoring: ``tanh`` as in equation 2, ``relu`` for Linear - ReLU - Linear; ``bilinear`` multiplies instead, ``w^T
            (W_v v * W_h h)``, the general form of Luong et al. 2015 of rank A: one matrix product, without a number for
            every pair and unit.

    Returns:
        (B, N, P) float32, differentiable with respect to patches, words and weight.
    """
    # Autocast would round the scores.
    with torch.autocast(words.device.type, enabled=False):
        if scoring == "bilinear" or words.is_cuda:
            return _formula(patches, words, weight, scoring)
        return _PairScores.apply(patches, words, weight, counts, scoring)  # type: ignore[no-any-return]


def _formula(patches: Tensor, words: Tensor, weight: Tensor, scoring: Scoring) -> Tensor:
    """The scores as they are defined, of all pairs at once."""
    if scoring == "bilinear":
        return (words * weight) @ patches.mT
    sums = patches[:, None] + words[:, :, None]
    return (torch.tanh(sums) if scoring == "tanh" else torch.relu(sums)) @ weight


def _powers(values: Tensor) -> Tensor:
    """exp(2x), for :func:`_halves`, for each patch and each word and not for each pair."""
    return values.clamp(-_LARGEST_EXPONENT, _LARGEST_EXPONENT).mul_(2).exp_()


def _halves(patches: Tensor, words: Tensor) -> Tensor:
    """u = 1 / (1 + exp(2a) exp(2b)) of powers (P, A) and (N, A): (N, P, A).

    tanh(a + b) = 1 - 2u, and its derivative is 4 u (1 - u). A division takes half of the time of a tanh.
    """
    ones = patches.new_ones(patches.shape[-1])
    return torch.addcmul(ones, patches, words[:, None]).reciprocal_()


def _relu(patches: Tensor, words: Tensor) -> Tensor:
    return torch.relu_(patches + words[:, None])


class _PairScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, patches: Tensor, words: Tensor, weight: Tensor, counts: Tensor, scoring: Scoring) -> Tensor:
        ctx.is_tanh = scoring == "tanh"
        if ctx.is_tanh:
            patches, words = _powers(patches), _powers(words)
        ctx.save_for_backward(patches, words, weight, counts)
        scores = words.new_zeros(*words.shape[:2], patches.shape[1])
        for image, some in _parts(counts):
            pairs = (_halves if ctx.is_tanh else _relu)(patches[image], words[image, some])
            scores[image, some] = pairs @ weight
        return weight.sum() - 2 * scores if ctx.is_tanh else scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        (gradient,) = gradients
        patches, words, weight, counts = ctx.saved_tensors
        for_patches, for_words = torch.zeros_like(patches), torch.zeros_like(words)
        for_weight = torch.zeros_like(weight)
        for image, some in _parts(counts):
            upstream = gradient[image, some]
            pairs = (_halves if ctx.is_tanh else _relu)(patches[image], words[image, some])
            of_weight = upstream.flatten() @ pairs.flatten(0, 1)
            for_weight += upstream.sum() - 2 * of_weight if ctx.is_tanh else of_weight
            slopes = pairs.addcmul_(pairs, pairs, value=-1).mul_(4) if ctx.is_tanh else pairs.sign_()
            for_words[image, some] = (upstream[:, None] @ slopes)[:, 0]
            for_patches[image] += slopes.mul_(upstream[..., None]).sum(0)
        return for_patches * weight, for_words * weight, for_weight, None, None


def _parts(counts: Tensor) -> Iterator[tuple[int, slice]]:
    """A few real words of an image at a time."""
    for image, count in enumerate(counts.tolist()):
        for first in range(0, count, _WORDS):
            yield image, slice(first, min(first + _WORDS, count))
