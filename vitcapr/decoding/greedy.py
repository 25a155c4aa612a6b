"""Greedy decoding: the most probable word at every step.

Apart from the beam search on purpose: training validates with this module, and an edit of the beam must not make
trained models stale.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from vitcapr.decoding.checks import check_found, check_lengths
from vitcapr.decoding.choices import block_repeats, next_log_probs
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.models.interface import Memory, StepwiseCaptioner

_SHRINK_BELOW = 0.75


@torch.inference_mode()
def greedy(
    model: StepwiseCaptioner,
    memory: Memory,
    *,
    start: int,
    end: int,
    pad: int,
    forbidden: Sequence[int],
    max_length: int,
    min_length: int = 0,
    block_ngram: int = 0,
    keep_attention: bool = False,
) -> list[Hypothesis]:
    """One caption for each of B images.

    Equal to a beam of one hypothesis. Equally probable words are taken in the order of their numbers.

    Args:
        memory: of B images, as ``model.encode`` gives it.
        forbidden: tokens that are never written, besides ``start`` and ``pad``.
        max_length: most words; a caption that reaches it is ended there, at the price of the end token.
        min_length: fewest words.
        block_ngram: no n-gram of this size occurs twice in a caption; 0 allows all.
        keep_attention: keep what each word looked at, if the model attends.

    Raises:
        UserError: ``min_length`` is above ``max_length``, or cannot be reached under ``block_ngram``.
    """
    check_lengths(min_length, max_length)
    images = next(iter(memory.values())).shape[0]
    device = next(iter(memory.values())).device
    words = torch.full((images, max_length + 1), pad, device=device)
    log_probs = torch.zeros(images, max_length + 1, device=device)
    attention: Tensor | None = None

    never = {start, pad, *forbidden}
    rows = torch.arange(images, device=device)
    state = model.initial_state(memory)
    tokens = torch.full((images, 1), start, device=device)
    running = torch.ones(images, dtype=torch.bool, device=device)
    for length in range(max_length + 1):
        step = model.step(memory, state, tokens)
        state = step.state
        candidates = next_log_probs(step.logits, sorted(never | {end} if length < min_length else never))
        if length == max_length:
            tokens = torch.full_like(tokens, end)
        else:
            if block_ngram:
                block_repeats(candidates, words[rows, None, :length], block_ngram)
            tokens = _first_largest(candidates)
        words[rows[running], length] = tokens[running, 0]
        log_probs[rows[running], length] = candidates.gather(2, tokens[..., None])[running, 0, 0]
        if keep_attention and step.attention is not None:
            if attention is None:
                shape = (images, max_length + 1, step.attention.shape[2])
                attention = torch.zeros(shape, dtype=torch.float16, device=device)
            attention[rows, length] = step.attention[:, 0].half()
        running &= tokens[:, 0] != end
        left = int(running.sum())
        if left == 0:
            break
        if left <= _SHRINK_BELOW * len(rows):
            kept = running.nonzero()[:, 0]
            rows, tokens, running = rows[kept], tokens[kept], running[kept]
            memory = {name: tensor[kept] for name, tensor in memory.items()}
            state = {name: tensor[kept] for name, tensor in state.items()}

    check_found(log_probs)
    return _collect(words, log_probs, attention, end)


def _first_largest(values: Tensor) -> Tensor:
    """The index of the largest number along the last axis, of equal ones the lowest: (...) int64 from (..., V).

    ``argmax`` leaves the order of equal numbers open on a GPU, and on a CPU takes several times as long. A row with
    NaN gives 0: nothing is smaller than a largest number that is none.
    """
    size = values.shape[-1]
    numbers = torch.arange(size, dtype=torch.int32, device=values.device)
    return torch.where(values < values.amax(-1, keepdim=True), size, numbers).amin(-1).long()


def _collect(words: Tensor, log_probs: Tensor, attention: Tensor | None, end: int) -> list[Hypothesis]:
    lengths = (words == end).int().argmax(1).tolist()
    weights = None if attention is None else attention.cpu().numpy()
    hypotheses = []
    for image, (tokens, values, length) in enumerate(zip(words.tolist(), log_probs.tolist(), lengths, strict=True)):
        log_prob = sum(values[: length + 1])
        hypotheses.append(
            Hypothesis(
                tokens=tokens[:length],
                token_log_probs=values[: length + 1],
                log_prob=log_prob,
                score=log_prob,
                attention=None if weights is None else weights[image, :length].copy(),
            )
        )
    return hypotheses
