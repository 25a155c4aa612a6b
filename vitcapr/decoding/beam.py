"""Beam search over many images and hypotheses at once.

At every step an image has up to ``beam_size`` live hypotheses, all of the same length. Their continuations compete by
log-probability: an end token among the ``beam_size`` best finishes a caption, and the ``beam_size`` best words go on.
Finished captions leave the beam for a list of the ``n_best`` of their image, ranked by

    score = log_prob / (words + 1) ** length_penalty

where ``words + 1`` counts the end token. As a log-probability only falls and a caption has at most ``max_length + 1``
tokens, no continuation of a live hypothesis can score above ``log_prob / (max_length + 1) ** length_penalty``. A live
hypothesis that cannot enter the list any more is dropped, and an image without live hypotheses leaves the batch; since
those dropped rank below all that stay, the result is the same as that of a search to the very end.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from vitcapr.decoding.back_pointers import BackPointers
from vitcapr.decoding.checks import check_found, check_lengths
from vitcapr.decoding.choices import block_repeats, next_log_probs
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.decoding.ranking import best, top_k
from vitcapr.errors import UserError
from vitcapr.models.interface import Memory, StepwiseCaptioner

_SHRINK_BELOW = 0.85
"""The share of unfinished images below which finished images are removed from the batch; the removal copies
features."""


@torch.inference_mode()
def beam_search(
    model: StepwiseCaptioner,
    memory: Memory,
    *,
    start: int,
    end: int,
    pad: int,
    forbidden: Sequence[int],
    beam_size: int,
    max_length: int,
    min_length: int = 0,
    length_penalty: float = 0.0,
    block_ngram: int = 0,
    n_best: int = 1,
    keep_attention: bool = False,
) -> list[list[Hypothesis]]:
    """The best captions of each of B images, in descending order of score.

    Equal scores are ordered: the shorter caption first, then that of the hypothesis which was ahead; equal
    continuations: the end first, then the hypothesis that was ahead, then the lower word number.

    Args:
        memory: of B images, as ``model.encode`` gives it.
        forbidden: tokens that are never written; ``start`` and ``pad`` never are.
        beam_size: live hypotheses of an image.
        max_length: most words; a caption that reaches it is ended there, at the price of the end token.
        min_length: fewest words.
        length_penalty: the exponent of the length in the score; 0 ranks by log-probability alone.
        block_ngram: no n-gram of this size occurs twice in a caption; 0 allows all.
        n_best: captions kept for each image, at most ``beam_size``; fewer are given only where fewer exist.
        keep_attention: keep what each word looked at, if the model attends.

    Raises:
        UserError: ``n_best`` is above ``beam_size``; ``min_length`` is above ``max_length`` or cannot be reached
            under ``block_ngram``.
    """
    check_lengths(min_length, max_length)
    if n_best > beam_size:
        raise UserError(
            f"decoding.n_best {n_best} is above decoding.beam_size {beam_size}",
            remedy="raise beam_size or lower n_best",
        )
    images = next(iter(memory.values())).shape[0]
    device = next(iter(memory.values())).device
    never = {start, pad, *forbidden}
    longest = float(max_length + 1) ** length_penalty

    finished = _Finished(images, n_best, device)
    back_pointers = BackPointers(images, beam_size, max_length, device)
    rows = torch.arange(images, device=device)
    state = model.initial_state(memory)
    tokens = torch.full((images, 1), start, device=device)
    live = torch.zeros(images, 1, device=device)
    history = tokens[..., None][..., :0]
    for length in range(max_length + 1):
        step = model.step(memory, state, tokens)
        log_probs = next_log_probs(step.logits, sorted(never))
        if keep_attention and step.attention is not None:
            back_pointers.look(rows, step.attention)
        ends = log_probs[..., end].clone()
        if length < min_length:
            ends.fill_(-torch.inf)
        log_probs[..., end] = -torch.inf
        if length == max_length:
            finished.offer(rows, length, live + ends, ends, length_penalty)
            break
        if block_ngram:
            block_repeats(log_probs, history, block_ngram)
        word_log_probs, words = top_k(log_probs, min(beam_size, log_probs.shape[2]))
        total, order = best((live[..., None] + word_log_probs).flatten(1), beam_size)
        parents = order // words.shape[2]
        words, word_log_probs = words.flatten(1).gather(1, order), word_log_probs.flatten(1).gather(1, order)

        ended = live + ends
        ended = torch.where(_among_best(ended, total, beam_size), ended, -torch.inf)
        finished.offer(rows, length, ended, ends, length_penalty)

        promising = total / longest > finished.threshold(rows)[:, None]
        left = promising.any(1)
        width = int(promising.sum(1).max())
        if width == 0:
            break
        kept = torch.arange(len(rows), device=device)
        if int(left.sum()) <= _SHRINK_BELOW * len(rows):
            kept = left.nonzero()[:, 0]
            memory = {name: tensor[kept] for name, tensor in memory.items()}
            rows = rows[kept]
        parents, tokens, live = parents[kept, :width], words[kept, :width], total[kept, :width]
        state = {name: tensor[kept[:, None], parents] for name, tensor in step.state.items()}
        if block_ngram:
            history = torch.cat([history[kept[:, None], parents], tokens[..., None]], dim=2)
        back_pointers.append(rows, parents, tokens, word_log_probs[kept, :width])

    check_found(finished.score[:, 0])
    return finished.captions(back_pointers)


def _among_best(ended: Tensor, going_on: Tensor, beam_size: int) -> Tensor:
    """Which of the ended captions are among the best continuations: (B, W) bool from (B, W) and (B, K)."""
    chosen = best(torch.cat([ended, going_on], dim=1), beam_size)[1]
    among = torch.zeros(len(ended), ended.shape[1] + going_on.shape[1], dtype=torch.bool, device=ended.device)
    return among.scatter_(1, chosen, True)[:, : ended.shape[1]]


class _Finished:
    """The n best finished captions of every image: (B, n) tensors in descending order of score."""

    def __init__(self, images: int, n_best: int, device: torch.device) -> None:
        self.score = torch.full((images, n_best), -torch.inf, device=device)
        self.log_prob = self.score.clone()
        self.end_log_prob = self.score.clone()
        self.length = torch.zeros(images, n_best, dtype=torch.int64, device=device)
        self.slot = self.length.clone()

    def threshold(self, rows: Tensor) -> Tensor:
        """The score that a caption must exceed to enter the list."""
        return self.score[rows, -1]

    def offer(self, rows: Tensor, words: int, log_prob: Tensor, end_log_prob: Tensor, length_penalty: float) -> None:
        """The live hypotheses of ``rows``, all of ``words`` words, end; minus infinity for those that do not."""
        keep = self.score.shape[1]
        slots = torch.arange(log_prob.shape[1], device=log_prob.device).expand(log_prob.shape)
        joined = torch.cat([self.score[rows], log_prob / float(words + 1) ** length_penalty], dim=1)
        self.score[rows], order = best(joined, keep)
        for kept, new in (
            (self.log_prob, log_prob),
            (self.end_log_prob, end_log_prob),
            (self.length, torch.full_like(slots, words)),
            (self.slot, slots),
        ):
            kept[rows] = torch.cat([kept[rows], new], dim=1).gather(1, order)

    def captions(self, back_pointers: BackPointers) -> list[list[Hypothesis]]:
        words, log_probs, attention = back_pointers.back(self.slot, self.length)
        weights = None if attention is None else attention.cpu().numpy()
        tokens, values, ends = words.tolist(), log_probs.tolist(), self.end_log_prob.tolist()
        totals, lengths = self.log_prob.tolist(), self.length.tolist()
        return [
            [
                Hypothesis(
                    tokens=tokens[image][rank][: lengths[image][rank]],
                    token_log_probs=[*values[image][rank][: lengths[image][rank]], ends[image][rank]],
                    log_prob=totals[image][rank],
                    score=score,
                    attention=None if weights is None else weights[image, rank, : lengths[image][rank]].copy(),
                )
                for rank, score in enumerate(scores)
                if score > -torch.inf
            ]
            for image, scores in enumerate(self.score.tolist())
        ]
