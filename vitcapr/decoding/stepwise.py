"""A caption as word numbers, which words may come next, and captions that are written word by word without a search.

Apart from the beam search on purpose: training validates with this module, and an edit of the beam must not make
trained models stale.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vitcapr.encoders.devices import kept_rows, to_device
from vitcapr.errors import UserError
from vitcapr.models.interface import Captioner, Memory, Step

_SHRINK_BELOW = 0.75
"""The share of unfinished images below which finished images are removed from the batch."""

Pick = Callable[[Step, Tensor, int], Tensor]
"""The next words, (A, K) int64, of the step that predicts them, of images (A,), after that many words."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A finished caption.

    The end token is part of the probability, not of the caption: ``token_log_probs`` has one number more than
    ``tokens``. A caption that was cut at the maximum length has the log-probability of ending there, so that every
    hypothesis is a whole sentence of the model and all are comparable.
    """

    tokens: list[int]
    """The words, without start and end."""
    token_log_probs: list[float]
    """Natural logarithm of the model's probability of each word, then of the end token."""
    log_prob: float
    """The sum of ``token_log_probs``."""
    score: float
    """The score by which a beam ranks; for greedy decoding, ``log_prob``."""
    attention: NDArray[np.float16] | None
    """(words, P), the attention over the patches for each word; None if not requested."""


def next_log_probs(logits: Tensor, forbidden: Tensor) -> Tensor:
    """Return the model's own log-probabilities, those of ``forbidden`` tokens replaced by minus infinity.

    The others are not renormalised: a log-probability means the same under every setting of the search.

    Args:
        logits: (..., V) float32.
        forbidden: (F,) int64.

    Returns:
        (..., V) float32, a new tensor.
    """
    return torch.nn.functional.log_softmax(logits, dim=-1).index_fill_(-1, forbidden, -torch.inf)


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
    limits = torch.where(begun, -torch.inf, torch.inf)
    return log_probs.scatter_reduce_(2, grams[..., -1], limits, "amin")


def check_log_probs(log_probs: Tensor) -> None:
    """Check that every image has a caption whose log-probability is a number.

    Blocking n-grams of a tiny vocabulary can leave no word to go on with before the minimum length.
    """
    if torch.isnan(log_probs).any():
        raise UserError(
            "the captioner predicts probabilities that are not numbers",
            remedy="decode with decoding.precision float32; if that does not help, its training has diverged",
        )
    if torch.isinf(log_probs).any():
        raise UserError(
            "no caption satisfies the settings: every word is blocked before min_length words are written",
            remedy="lower decoding.min_length or raise decoding.block_ngram",
        )


def draw(
    model: Captioner, memory: Memory, pick: Pick, *, samples: int, steps: int, start: int, end: int, pad: int
) -> Tensor:
    """Draw K captions of each of B images: (B, K, T) int64, the end included, then padded; T is at most ``steps``.

    Args:
        memory: of B images, as ``model.encode`` gives it.
        pick: chooses the next words. It is also asked for captions that have ended, while their image has others;
            those words are left out.
        samples: K.
        steps: most tokens; a caption that reaches them is left as it is.
    """
    first = next(iter(memory.values()))
    images = len(first)
    words = torch.full((images, samples, steps), pad, dtype=torch.int64, device=first.device)
    state = {
        name: value.expand(images, samples, *value.shape[2:]) for name, value in model.initial_state(memory).items()
    }
    tokens = torch.full((images, samples), start, device=first.device)
    places = torch.arange(images, device=first.device)
    running = torch.ones_like(tokens, dtype=torch.bool)
    for length in range(steps):
        step = model.step(memory, state, tokens)
        state = step.state
        tokens = pick(step, places, length)
        words[places, :, length] = tokens.where(running, pad)
        running = running & (tokens != end)
        unfinished = running.any(1)
        left = int(unfinished.sum())
        if left == 0:
            return words[:, :, : length + 1]
        if left <= _SHRINK_BELOW * len(places):
            kept = kept_rows(unfinished, left)
            places, tokens, running = places[kept], tokens[kept], running[kept]
            memory = {name: value[kept] for name, value in memory.items()}
            state = {name: value[kept] for name, value in state.items()}
    return words


def pick_class(chances: Tensor, uniform: Tensor) -> Tensor:
    """Draw one class of each distribution by inverting its cumulative sum: (...) int64.

    ``torch.multinomial`` draws a number for every class, on a CPU on one thread, which takes longer than the model.
    A class without a share is never picked: the threshold lies above 0 and at most at the sum. Of chances that are
    not numbers it is the last class.

    Args:
        chances: (..., V), not negative; they need not sum to 1.
        uniform: (..., 1), random numbers from 0 to below 1.
    """
    sums = chances.cumsum(-1)
    thresholds = (1 - uniform) * sums[..., -1:]
    return torch.searchsorted(sums, thresholds)[..., 0].clamp(max=chances.shape[-1] - 1)


Choose = Callable[[Tensor, Tensor, int], Tensor]
"""The next words, (A, K) int64, from their log-probabilities, (A, K, V), of images (A,), after that many words."""


class Limits(TypedDict):
    """The captions that may be written.

    Attributes:
        forbidden: tokens that are never written; ``start`` and ``pad`` never are.
        max_length: most words; a caption that reaches it is ended there, at the price of the end token.
        min_length: fewest words, at most ``max_length``; 0 by default.
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
    model: Captioner,
    memory: Memory,
    choose: Choose,
    *,
    samples: int = 1,
    **limits: Unpack[Limits],
) -> list[list[Hypothesis]]:
    """Return K captions of each of B images; their score is their log-probability.

    Args:
        memory: of B images, as ``model.encode`` gives it.
        choose: chooses the next words. It is also asked for captions that have ended.
        samples: K.

    Raises:
        UserError: ``min_length`` cannot be reached under ``block_ngram``.
    """
    start, end, pad, max_length = limits["start"], limits["end"], limits["pad"], limits["max_length"]
    min_length, block_ngram = limits.get("min_length", 0), limits.get("block_ngram", 0)
    first = next(iter(memory.values()))
    shape = (len(first), samples, max_length + 1)
    words = torch.full(shape, pad, device=first.device)
    log_probs = torch.zeros(shape, device=first.device)
    attention: Tensor | None = None
    tokens = [*limits["forbidden"], start, pad, end]
    never, not_yet = (to_device(torch.tensor(some), first.device) for some in (tokens[:-1], tokens))

    def pick(step: Step, places: Tensor, length: int) -> Tensor:
        nonlocal attention
        candidates = next_log_probs(step.logits, never if length >= min_length else not_yet)
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
    check_log_probs(log_probs.where(torch.arange(max_length + 1, device=first.device) <= lengths[..., None], 0.0))
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
                    score=log_prob,
                    attention=None if weights is None else weights[image, number, :length].copy(),
                )
            )
    return captions


@torch.inference_mode()
def greedy(model: Captioner, memory: Memory, **limits: Unpack[Limits]) -> list[Hypothesis]:
    """Return one caption for each of B images, by greedy decoding.

    Equal to a beam of one hypothesis. Equally probable words are taken in the order of their numbers.
    """
    captions = decode_stepwise(model, memory, lambda log_probs, _, __: _first_largest(log_probs), **limits)
    return [caption for (caption,) in captions]


def _first_largest(values: Tensor) -> Tensor:
    """Return the index of the largest number along the last axis, of equal ones the lowest: (...) int64 from (..., V).

    ``argmax`` leaves the order of equal numbers open on a GPU, and on a CPU takes several times as long. A row with
    NaN gives 0: nothing is smaller than a largest number that is none.
    """
    size = values.shape[-1]
    numbers = torch.arange(size, dtype=torch.int32, device=values.device)
    return torch.where(values < values.amax(-1, keepdim=True), size, numbers).amin(-1).long()
