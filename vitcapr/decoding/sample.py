"""Captions drawn at random from a captioner.

Each word is drawn from the captioner's distribution at a temperature, cut to the ``top_k`` most probable words (Fan et
al. 2018) or to the fewest that hold ``top_p`` of it (nucleus sampling, Holtzman et al. 2020). The log-probabilities are
the captioner's own, before temperature and cuts, so that they compare with those of a beam.

The random numbers of an image are its own, made from the seed and the image's number: neither the other images nor the
size of a batch change what is drawn for it, and the first samples stay the same if more are drawn.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from vitcapr.decoding.checks import check_found, check_lengths
from vitcapr.decoding.choices import block_repeats, next_log_probs
from vitcapr.decoding.draw import draw, pick_class
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.models.interface import Memory, Step, StepwiseCaptioner


@torch.inference_mode()
def sample(
    model: StepwiseCaptioner,
    memory: Memory,
    *,
    start: int,
    end: int,
    pad: int,
    forbidden: Sequence[int],
    images: Sequence[int],
    samples: int,
    max_length: int,
    min_length: int = 0,
    length_penalty: float = 0.0,
    block_ngram: int = 0,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
    keep_attention: bool = False,
) -> list[list[Hypothesis]]:
    """The different captions among the samples of each of B images, in descending order of score.

    The score is that of a beam, log_prob / (words + 1) ** length_penalty. Of equal ones the one drawn first is first.

    Args:
        memory: of B images, as ``model.encode`` gives it.
        forbidden: tokens that are never drawn, besides ``start`` and ``pad``.
        images: (B,), the number of each image, from which its random numbers are made.
        samples: captions drawn for each image.
        max_length: most words; a caption that reaches it is ended there, at the price of the end token.
        min_length: fewest words.
        block_ngram: no n-gram of this size occurs twice in a caption; 0 allows all.
        temperature: what the logits are divided by.
        top_k: words that can be drawn; None for all.
        top_p: the share of the distribution that can be drawn, the most probable words first.
        keep_attention: keep what each word looked at, if the model attends.

    Raises:
        UserError: ``min_length`` is above ``max_length``, or cannot be reached under ``block_ngram``.
    """
    check_lengths(min_length, max_length)
    device = next(iter(memory.values())).device
    shape = (len(images), samples, max_length + 1)
    history = torch.full(shape, pad, device=device)
    log_probs = torch.zeros(shape, device=device)
    uniform = _uniform(seed, images, shape[1:]).to(device)
    attention: Tensor | None = None
    never = sorted({start, pad, *forbidden})

    def pick(step: Step, places: Tensor, length: int) -> Tensor:
        nonlocal attention
        candidates = next_log_probs(step.logits, never if length >= min_length else sorted({*never, end}))
        if length == max_length:
            words = torch.full(candidates.shape[:2], end, device=device)
        else:
            if block_ngram:
                block_repeats(candidates, history[places, :, :length], block_ngram)
            words = _draw_words(candidates / temperature, uniform[places, :, length, None], top_k, top_p)
        history[places, :, length] = words
        log_probs[places, :, length] = candidates.gather(2, words[..., None])[..., 0]
        if keep_attention and step.attention is not None:
            if attention is None:
                attention = torch.zeros(*shape, step.attention.shape[2], dtype=torch.float16, device=device)
            attention[places, :, length] = step.attention.half()
        return words

    words = draw(model, memory, pick, samples=samples, steps=max_length + 1, start=start, end=end, pad=pad)
    log_probs = log_probs[..., : words.shape[2]].where(words != pad, 0.0)
    check_found(log_probs)
    weights = None if attention is None else attention.cpu().numpy()
    return [
        _different(tokens, values, end, length_penalty, None if weights is None else weights[image])
        for image, (tokens, values) in enumerate(zip(words.tolist(), log_probs.tolist(), strict=True))
    ]


def _uniform(seed: int, images: Sequence[int], shape: tuple[int, ...]) -> Tensor:
    """Random numbers from 0 to below 1 for each image: (B, *shape) float32."""
    numbers = [np.random.default_rng((seed, image)).random(shape, dtype=np.float32) for image in images]
    return torch.from_numpy(np.stack(numbers))


def _draw_words(scores: Tensor, uniform: Tensor, top_k: int | None, top_p: float) -> Tensor:
    """Words drawn from the softmax of scores, (..., V), after the cuts: (...) int64. uniform: (..., 1)."""
    if top_k is None and top_p == 1:
        return pick_class(torch.softmax(scores, dim=-1), uniform)
    # A stable sort has the same order on every device: of equally probable words the lower number is first.
    scores, words = scores.sort(dim=-1, descending=True, stable=True)
    chances = torch.softmax(scores[..., :top_k], dim=-1)
    before = chances.cumsum(-1) - chances
    return words.gather(-1, pick_class(chances.where(before < top_p, 0.0), uniform)[..., None])[..., 0]


def _different(
    drawn: list[list[int]],
    log_probs: list[list[float]],
    end: int,
    length_penalty: float,
    attention: np.ndarray | None,
) -> list[Hypothesis]:
    """The different captions of one image by descending score. attention: (K, T, P)."""
    found: dict[tuple[int, ...], Hypothesis] = {}
    for number, (caption, values) in enumerate(zip(drawn, log_probs, strict=True)):
        length = caption.index(end)
        tokens, log_prob = caption[:length], sum(values[: length + 1])
        found.setdefault(
            tuple(tokens),
            Hypothesis(
                tokens=tokens,
                token_log_probs=values[: length + 1],
                log_prob=log_prob,
                score=log_prob / (length + 1) ** length_penalty,
                attention=None if attention is None else attention[number, :length].copy(),
            ),
        )
    return sorted(found.values(), key=lambda hypothesis: -hypothesis.score)
