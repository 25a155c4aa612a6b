"""Attention scores of words and patches: additive in tiles that fit the cache, and bilinear.

The plain form of ``w^T tanh(W_v v_i + W_h h_t + b)`` builds a tensor of words x patches x units for the whole batch and
sends it through memory several times. Here the same numbers are computed tile by tile, and the backward pass computes a
tile again instead of keeping it.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor

Scoring = Literal["tanh", "relu", "bilinear"]

_TILE_ELEMENTS = {"cpu": 1 << 18, "cuda": 1 << 27}
"""On a CPU one megabyte, which fits the second cache of a core."""
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
    with _float32(words):
        if scoring == "bilinear":
            return _bilinear_scores(patches, words, weight)
        if scoring == "tanh":
            limit = _LARGEST_EXPONENT
            return _TanhScores.apply(patches.clamp(-limit, limit), words.clamp(-limit, limit), weight, counts)  # type: ignore[no-any-return]
        return _ReluScores.apply(patches, words, weight, counts)  # type: ignore[no-any-return]


def prepare_patches(patches: Tensor, scoring: Scoring) -> Tensor:
    """What :func:`prepared_scores` reads of the patches, computed once for all words of a decoding. No gradient."""
    return _powers(patches) if scoring == "tanh" else patches


def prepared_scores(prepared: Tensor, words: Tensor, weight: Tensor, counts: Tensor, scoring: Scoring) -> Tensor:
    """:func:`patch_scores` with patches from :func:`prepare_patches`, without a gradient."""
    with _float32(words):
        if scoring == "bilinear":
            return _bilinear_scores(prepared, words, weight)
        if scoring == "tanh":
            return _tanh_scores(prepared, _powers(words), weight, counts)
        return _relu_scores(prepared, words, weight, counts)


def _bilinear_scores(patches: Tensor, words: Tensor, weight: Tensor) -> Tensor:
    return (words * weight) @ patches.transpose(1, 2)


def _float32(like: Tensor) -> torch.autocast:
    """Autocast would copy every tile to multiply it once, which takes twice as long, and round the scores."""
    return torch.autocast(like.device.type, enabled=False)


def _tiles(shape: tuple[int, int, int, int], counts: Tensor) -> Iterator[tuple[slice, slice]]:
    """Slices of images and of words whose pairs with all patches fit the cache, padding left out where it can be."""
    images, longest, patches, units = shape
    budget = _TILE_ELEMENTS.get(counts.device.type, _TILE_ELEMENTS["cpu"])
    group = max(1, min(images, budget // max(1, longest * patches * units)))
    step = max(1, budget // (group * patches * units))
    words = [longest] * images if group > 1 else counts.tolist()
    for first in range(0, images, group):
        for start in range(0, words[first], step):
            yield slice(first, first + group), slice(start, min(start + step, words[first]))


def _sizes(patches: Tensor, words: Tensor) -> tuple[int, int, int, int]:
    return words.shape[0], words.shape[1], patches.shape[1], patches.shape[2]


class _Scratch:
    """Memory for one tile, taken once: a fresh allocation for every tile costs more than the arithmetic."""

    def __init__(self, like: Tensor) -> None:
        self._flat = like.new_empty(0)

    def of(self, shape: tuple[int, ...]) -> Tensor:
        size = math.prod(shape)
        if self._flat.numel() < size:
            self._flat = self._flat.new_empty(size)
        return self._flat[:size].view(shape)


class _TanhScores(torch.autograd.Function):
    """With u = 1 / (1 + exp(2a) exp(2b)): tanh(a + b) = 1 - 2u, and its derivative is 4 u (1 - u)."""

    @staticmethod
    def forward(ctx: Any, patches: Tensor, words: Tensor, weight: Tensor, counts: Tensor) -> Tensor:
        patch_powers, word_powers = _powers(patches), _powers(words)
        ctx.save_for_backward(patch_powers, word_powers, weight, counts)
        return _tanh_scores(patch_powers, word_powers, weight, counts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (gradient,) = gradients
        patch_powers, word_powers, weight, counts = ctx.saved_tensors
        for_patches, for_words = torch.zeros_like(patch_powers), torch.zeros_like(word_powers)
        for_weight = torch.zeros_like(weight)
        scratch = _Scratch(weight)
        for images, part in _tiles(_sizes(patch_powers, word_powers), counts):
            upstream = gradient[images, part].contiguous()
            halves = _halves(patch_powers[images], word_powers[images, part], scratch)
            for_weight += upstream.sum() - 2 * (upstream.view(1, -1) @ halves.view(-1, weight.numel()))[0]
            _spread(halves.addcmul_(halves, halves, value=-1), upstream, for_patches, for_words, images, part)
        return for_patches.mul_(4 * weight), for_words.mul_(4 * weight), for_weight, None


def _powers(values: Tensor) -> Tensor:
    """exp(2x): tanh(a + b) = 1 - 2 / (1 + exp(2a) exp(2b)) takes them per patch and per word, not per pair."""
    return values.clamp(-_LARGEST_EXPONENT, _LARGEST_EXPONENT).mul_(2).exp_()


def _tanh_scores(patch_powers: Tensor, word_powers: Tensor, weight: Tensor, counts: Tensor) -> Tensor:
    scores = word_powers.new_zeros(word_powers.shape[0], word_powers.shape[1], patch_powers.shape[1])
    total, doubled = weight.sum(), -2 * weight
    scratch = _Scratch(word_powers)
    for images, part in _tiles(_sizes(patch_powers, word_powers), counts):
        halves = _halves(patch_powers[images], word_powers[images, part], scratch)
        scores[images, part] = (halves @ doubled).add_(total)
    return scores


def _halves(patch_powers: Tensor, word_powers: Tensor, scratch: _Scratch) -> Tensor:
    """1 / (1 + exp(2a) exp(2b)) for every pair: (images, words, patches, units)."""
    pairs = _pairs(patch_powers, word_powers, scratch)
    ones = patch_powers.new_ones(patch_powers.shape[-1])
    return torch.addcmul(ones, patch_powers[:, None], word_powers[:, :, None], out=pairs).reciprocal_()


def _pairs(patches: Tensor, words: Tensor, scratch: _Scratch) -> Tensor:
    return scratch.of((words.shape[0], words.shape[1], patches.shape[1], patches.shape[2]))


def _spread(
    slopes: Tensor, upstream: Tensor, for_patches: Tensor, for_words: Tensor, images: slice, part: slice
) -> None:
    """Add the tile's share of the gradients, the factor ``weight`` left for the end; ``slopes`` is used up."""
    for_words[images, part] = (upstream[..., None, :] @ slopes)[..., 0, :]
    for_patches[images] += slopes.mul_(upstream[..., None]).sum(1)


class _ReluScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, patches: Tensor, words: Tensor, weight: Tensor, counts: Tensor) -> Tensor:
        ctx.save_for_backward(patches, words, weight, counts)
        return _relu_scores(patches, words, weight, counts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (gradient,) = gradients
        patches, words, weight, counts = ctx.saved_tensors
        for_patches, for_words = torch.zeros_like(patches), torch.zeros_like(words)
        for_weight = torch.zeros_like(weight)
        scratch = _Scratch(words)
        for images, part in _tiles(_sizes(patches, words), counts):
            upstream = gradient[images, part].contiguous()
            active = _active(patches[images], words[images, part], scratch)
            for_weight += (upstream.view(1, -1) @ active.view(-1, weight.numel()))[0]
            _spread(active.sign_(), upstream, for_patches, for_words, images, part)
        return for_patches.mul_(weight), for_words.mul_(weight), for_weight, None


def _relu_scores(patches: Tensor, words: Tensor, weight: Tensor, counts: Tensor) -> Tensor:
    scores = words.new_zeros(words.shape[0], words.shape[1], patches.shape[1])
    scratch = _Scratch(words)
    for images, part in _tiles(_sizes(patches, words), counts):
        scores[images, part] = _active(patches[images], words[images, part], scratch) @ weight
    return scores


def _active(patches: Tensor, words: Tensor, scratch: _Scratch) -> Tensor:
    """relu(a + b) for every pair: (images, words, patches, units)."""
    pairs = _pairs(patches, words, scratch)
    return torch.add(patches[:, None], words[:, :, None], out=pairs).relu_()
