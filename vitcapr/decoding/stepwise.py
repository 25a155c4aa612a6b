"""Captions that are written word by word without a search: what greedy decoding and sampling share."""

from collections.abc import Callable, Sequence
from typing import NotRequired, TypedDict, Unpack

import torch
from torch import Tensor

from vitcapr.decoding.checks import check_found, check_lengths
from vitcapr.decoding.choices import block_repeats, next_log_probs
from vitcapr.decoding.draw import draw
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.models.interface import Memory, Step, StepwiseCaptioner

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""The next words, (A, K) int64, from their log-probabilities, (A, K, V), of images (A,), after that many words."""


class Limits(TypedDict):
    """The captions that may be written.

    Attributes:
        forbidden: tokens that are never written; ``start`` and ``pad`` never are.
        max_length: most words; a caption that reaches it is ended there, at the price of the end token.
        min_length: fewest words; 0 by default.
        block_ngram: no n-gram of this size occurs twice in a caption; 0, the default, allows all.
        keep_attention: keep what each word looked at, if the model attends.
    """

    start: int
    end: int
    pad: int
    forbidden: Sequence[int]
    max_length: int
    min_length: NotRequired[int]
    block_ngram: NotRequired[int]
    keep_attention: NotRequired[bool]


def decode_stepwise(
    model: StepwiseCaptioner,
    memory: Memory,
    choose: Choose,
    *,
    samples: int = 1,
    length_penalty: float = 0.0,
    **limits: Unpack[Limits],
) -> list[list[Hypothesis]]:
    """K captions of each of B images, whose score is log_prob / (words + 1) ** length_penalty.

    Args:
        memory: of B images, as ``model.encode`` gives it.
        choose: chooses the next words. It is asked for captions that have ended, too.
        samples: K.

    Raises:
        UserError: ``min_length`` is above ``max_length``, or cannot be reached under ``block_ngram``.
    """
    start, end, pad, max_length = limits["start"], limits["end"], limits["pad"], limits["max_length"]
    min_length, block_ngram = limits.get("min_length", 0), limits.get("block_ngram", 0)
    check_lengths(min_length, max_length)
    first = next(iter(memory.values()))
    shape = (len(first), samples, max_length + 1)
    words = torch.full(shape, pad, device=first.device)
    log_probs = torch.zeros(shape, device=first.device)
    attention: Tensor | None = None
    never = sorted({start, pad, *limits["forbidden"]})

    def pick(step: Step, places: Tensor, length: int) -> Tensor:
        nonlocal attention
        candidates = next_log_probs(step.logits, never if length >= min_length else sorted({*never, end}))
        if length == max_length:
            chosen = torch.full(candidates.shape[:2], end, device=first.device)
        else:
            if block_ngram:
                block_repeats(candidates, words[places, :, :length], block_ngram)
            chosen = choose(candidates, places, length)
        words[places, :, length] = chosen
        log_probs[places, :, length] = candidates.gather(2, chosen[..., None])[..., 0]
        if limits.get("keep_attention") and step.attention is not None:
            if attention is None:
                attention = torch.zeros(*shape, step.attention.shape[2], dtype=torch.float16, device=first.device)
            attention[places, :, length] = step.attention.half()
        return chosen

    draw(model, memory, pick, samples=samples, steps=max_length + 1, start=start, end=end, pad=pad)
    lengths = (words == end).int().argmax(2)
    check_found(log_probs.where(torch.arange(max_length + 1, device=first.device) <= lengths[..., None], 0.0))
    weights = None if attention is None else attention.cpu().numpy()
    captions: list[list[Hypothesis]] = [[] for _ in range(shape[0])]
    for image, of_image in enumerate(zip(words.tolist(), log_probs.tolist(), lengths.tolist(), strict=True)):
        for number, (tokens, values, length) in enumerate(zip(*of_image, strict=True)):
            log_prob = sum(values[: length + 1])
            captions[image].append(
                Hypothesis(
                    tokens=tokens[:length],
                    token_log_probs=values[: length + 1],
                    log_prob=log_prob,
                    score=log_prob / (length + 1) ** length_penalty,
                    attention=None if weights is None else weights[image, number, :length].copy(),
                )
            )
    return captions
