"""Draws captions from a captioner, word by word."""

from collections.abc import Callable

import torch
from torch import Tensor

from vitcapr.models.interface import Memory, Step, StepwiseCaptioner

_SHRINK_BELOW = 0.75

Pick = Callable[[Step, Tensor, int], Tensor]
"""The next words, (A, K) int64, of the step that predicts them, of images (A,), after that many words."""


def draw(
    model: StepwiseCaptioner, memory: Memory, pick: Pick, *, samples: int, steps: int, start: int, end: int, pad: int
) -> Tensor:
    """K captions of each of B images: (B, K, T) int64, the end included, then padded; T is at most ``steps``.

    Args:
        memory: of B images, as ``model.encode`` gives it.
        pick: chooses the next words. It is asked for the captions that have ended, too, while their image has others;
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
            places, tokens, running = places[unfinished], tokens[unfinished], running[unfinished]
            memory = {name: value[unfinished] for name, value in memory.items()}
            state = {name: value[unfinished] for name, value in state.items()}
    return words


def pick_class(chances: Tensor, uniform: Tensor) -> Tensor:
    """One class of each distribution, by inverting its cumulative sum: (...) int64.

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
