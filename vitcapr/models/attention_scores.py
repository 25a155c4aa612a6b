"""Attention scores of words and patches: additive and bilinear.

``w^T tanh(W_v v_i + W_h h_t + b)`` needs a number for every word, patch and unit. The plain formula keeps these tensors
of the whole batch for the backward pass. On a CPU, they are made for a few words at a time, which fit the cache, and
once more in the backward pass: a training step takes half of the time, and a decoding two thirds.
"""

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor

Scoring = Literal["tanh", "relu", "bilinear"]

_WORDS = 8
"""Words whose pairs with the patches of their image are computed together."""
_LARGEST_EXPONENT = 20.0
"""tanh is 1 to the last bit of a float32 beyond 10; clamping here keeps the product of two exponentials finite."""


def patch_scores(patches: Tensor, words: Tensor, weight: Tensor, counts: Tensor, scoring: Scoring) -> Tensor:
    """Return the attention score of each word and each patch (ViTCap-R, equation 2, before the softmax).

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


def prepare_patches(patches: Tensor, scoring: Scoring) -> Tensor:
    """Return the patches as :func:`prepared_scores` reads them, computed once for all words of a decoding."""
    return _powers(patches) if scoring == "tanh" and not patches.is_cuda else patches


def prepared_scores(prepared: Tensor, words: Tensor, weight: Tensor, counts: Tensor, scoring: Scoring) -> Tensor:
    """:func:`patch_scores` without gradients, of patches from :func:`prepare_patches`."""
    with torch.autocast(words.device.type, enabled=False):
        if scoring == "bilinear" or words.is_cuda:
            return _formula(prepared, words, weight, scoring)
        return _scores(prepared, _powers(words) if scoring == "tanh" else words, weight, counts, scoring)


def _formula(patches: Tensor, words: Tensor, weight: Tensor, scoring: Scoring) -> Tensor:
    """Return the scores as they are defined, of all pairs at once."""
    if scoring == "bilinear":
        return (words * weight) @ patches.mT
    sums = patches[:, None] + words[:, :, None]
    return (torch.tanh(sums) if scoring == "tanh" else torch.relu(sums)) @ weight


def _powers(values: Tensor) -> Tensor:
    """exp(2x), for :func:`_halves`, for each patch and each word and not for each pair."""
    return values.clamp(-_LARGEST_EXPONENT, _LARGEST_EXPONENT).mul_(2).exp_()


def _halves(patches: Tensor, words: Tensor, out: Tensor) -> Tensor:
    """U = 1 / (1 + exp(2a) exp(2b)) of powers (B, P, A) and (B, N, A): (B, N, P, A), in ``out``.

    tanh(a + b) = 1 - 2u, and its derivative is 4 u (1 - u). A division takes half of the time of a tanh.
    """
    ones = patches.new_ones(patches.shape[-1])
    return torch.addcmul(ones, patches[:, None], words[:, :, None], out=out).reciprocal_()


def _relu(patches: Tensor, words: Tensor, out: Tensor) -> Tensor:
    return torch.add(patches[:, None], words[:, :, None], out=out).relu_()


def _scores(patches: Tensor, words: Tensor, weight: Tensor, counts: Tensor, scoring: Scoring) -> Tensor:
    """(B, N, P) of the powers for ``tanh``, of the sums for ``relu``."""
    scores = words.new_zeros(*words.shape[:2], patches.shape[1])
    pairs = _halves if scoring == "tanh" else _relu
    for images, some, out in _parts(counts, patches):
        scores[images, some] = pairs(patches[images], words[images, some], out) @ weight
    return weight.sum() - 2 * scores if scoring == "tanh" else scores


class _PairScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, patches: Tensor, words: Tensor, weight: Tensor, counts: Tensor, scoring: Scoring) -> Tensor:
        ctx.is_tanh = scoring == "tanh"
        if ctx.is_tanh:
            patches, words = _powers(patches), _powers(words)
        ctx.save_for_backward(patches, words, weight, counts)
        return _scores(patches, words, weight, counts, scoring)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        (gradient,) = gradients
        patches, words, weight, counts = ctx.saved_tensors
        for_patches, for_words = torch.zeros_like(patches), torch.zeros_like(words)
        for_weight = torch.zeros_like(weight)
        for images, some, out in _parts(counts, patches):
            upstream = gradient[images, some]
            pairs = (_halves if ctx.is_tanh else _relu)(patches[images], words[images, some], out)
            of_weight = upstream.flatten() @ pairs.flatten(0, 2)
            for_weight += upstream.sum() - 2 * of_weight if ctx.is_tanh else of_weight
            slopes = pairs.addcmul_(pairs, pairs, value=-1) if ctx.is_tanh else pairs.sign_()
            for_words[images, some] = (upstream[:, :, None] @ slopes)[:, :, 0]
            for_patches[images] += slopes.mul_(upstream[..., None]).sum(1)
        slope = 4 * weight if ctx.is_tanh else weight
        return for_patches * slope, for_words * slope, for_weight, None, None


def _parts(counts: Tensor, patches: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """Yield a few words at a time, and memory for their pairs.

    They are words of one image, or of several images that have few words each.

    The memory is one block, which stays in the cache.
    """
    numbers = counts.tolist()
    images = max(1, _WORDS // max([1, *numbers]))
    block = patches.new_empty(_WORDS, *patches.shape[1:])
    for first in range(0, len(numbers), images):
        some = numbers[first : first + images]
        for word in range(0, max(some), _WORDS):
            words = min(_WORDS, max(some) - word)
            pairs = block[: len(some) * words].view(len(some), words, *patches.shape[1:])
            yield slice(first, first + images), slice(word, word + words), pairs
