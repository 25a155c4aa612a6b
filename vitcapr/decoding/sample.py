"""Captions drawn at random from a captioner.

Each word is drawn from the captioner's distribution at a temperature, cut to the ``top_k`` most probable words (Fan et
al. 2018) or to the fewest that hold ``top_p`` of it (nucleus sampling, Holtzman et al. 2020). The log-probabilities are
the captioner's own, before temperature and cuts, so that they compare with those of a beam.

The random numbers of an image are its own, made from the seed and the image's number: neither the other images nor the
size of a batch change what is drawn for it, and the first samples stay the same if more are drawn.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
import torch
from torch import Tensor

from vitcapr.decoding.stepwise import Hypothesis, Limits, decode_stepwise, pick_class
from vitcapr.encoders.devices import to_device
from vitcapr.models.interface import Captioner, Memory


@torch.inference_mode()
def sample(
    model: Captioner,
    memory: Memory,
    *,
    images: Sequence[int],
    samples: int,
    length_penalty: float = 0.0,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
    **limits: Unpack[Limits],
) -> list[list[Hypothesis]]:
    """Return the different captions among the samples of each of B images, in descending order of score.

    The score is that of a beam, log_prob / (words + 1) ** length_penalty. Of equal ones the one drawn first is first.

    Args:
        images: (B,), the number of each image, from which its random numbers are made.
        samples: captions drawn for each image.
        temperature: divisor of the logits.
        top_k: words that can be drawn; None for all.
        top_p: the share of the distribution that can be drawn, the most probable words first.
        limits: see :class:`Limits`.
    """
    shape = samples, limits["max_length"] + 1
    numbers = [np.random.default_rng((seed, image)).random(shape, dtype=np.float32) for image in images]
    uniform = torch.from_numpy(np.stack(numbers))
    uniform = to_device(uniform, next(iter(memory.values())).device)

    def choose(log_probs: Tensor, places: Tensor, length: int) -> Tensor:
        return _draw_words(log_probs / temperature, uniform[places, :, length, None], top_k, top_p)

    drawn = decode_stepwise(model, memory, choose, samples=samples, **limits)
    return [_different(captions, length_penalty) for captions in drawn]


def _draw_words(scores: Tensor, uniform: Tensor, top_k: int | None, top_p: float) -> Tensor:
    """Words drawn from the softmax of scores, (..., V), after the cuts: (...) int64. uniform: (..., 1)."""
    if top_k is None and top_p == 1:
        return pick_class(torch.softmax(scores, dim=-1), uniform)
    # A stable sort has the same order on every device: of equally probable words the lower number is first.
    scores, words = scores.sort(dim=-1, descending=True, stable=True)
    chances = torch.softmax(scores[..., :top_k], dim=-1)
    before = chances.cumsum(-1) - chances
    return words.gather(-1, pick_class(chances.where(before < top_p, 0.0), uniform)[..., None])[..., 0]


def _different(captions: Sequence[Hypothesis], length_penalty: float) -> list[Hypothesis]:
    """Return different captions by descending score; of equal captions, and of equal scores, the first."""
    different: dict[tuple[int, ...], Hypothesis] = {}
    for caption in captions:
        score = caption.log_prob / len(caption.token_log_probs) ** length_penalty
        different.setdefault(tuple(caption.tokens), replace(caption, score=score))
    return sorted(different.values(), key=lambda caption: -caption.score)
