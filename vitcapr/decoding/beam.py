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

from vitcapr.decoding.stepwise import Hypothesis, block_repeats, check_log_probs, next_log_probs
from vitcapr.encoders.devices import kept_rows, to_device
from vitcapr.models.interface import Captioner, Memory

_SHRINK_BELOW = 0.85
"""The share of unfinished images below which finished images are removed from the batch; the removal copies
features."""


@torch.inference_mode()
def beam_search(
    model: Captioner,
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
    """Return the best captions of each of B images, in descending order of score.

    Equal scores are ordered: the shorter caption first, then that of the hypothesis which was ahead; equal
    continuations: the end first, then the hypothesis that was ahead, then the lower word number.

    Args:
        memory: of B images, as ``model.encode`` gives it.
        forbidden: tokens that are never written; ``start`` and ``pad`` never are.
        beam_size: live hypotheses of an image.
        max_length: most words; a caption that reaches it is ended there, at the price of the end token.
        min_length: fewest words, at most ``max_length``.
        length_penalty: the exponent of the length in the score; 0 ranks by log-probability alone.
        block_ngram: no n-gram of this size occurs twice in a caption; 0 allows all.
        n_best: captions kept for each image, at most ``beam_size``; fewer are given only where fewer exist.
        keep_attention: keep what each word looked at, if the model attends.

    Raises:
        UserError: ``min_length`` cannot be reached under ``block_ngram``.
    """
    images = next(iter(memory.values())).shape[0]
    device = next(iter(memory.values())).device
    never = to_device(torch.tensor([*forbidden, start, pad]), device)
    longest = float(max_length + 1) ** length_penalty

    finished = _Finished(images, n_best, device)
    rows = torch.arange(images, device=device)
    state = model.initial_state(memory)
    tokens = torch.full((images, 1), start, device=device)
    live = torch.zeros(images, 1, device=device)
    histories = {
        "words": torch.full((images, 1, max_length), pad, device=device),
        "log_probs": torch.zeros(images, 1, max_length + 1, device=device),
    }
    for length in range(max_length + 1):
        step = model.step(memory, state, tokens)
        log_probs = next_log_probs(step.logits, never)
        if keep_attention and step.attention is not None:
            if "looks" not in histories:
                histories["looks"] = torch.zeros(images, 1, max_length + 1, dtype=torch.int64, device=device)
            histories["looks"][:, :, length] = finished.look(step.attention)
        ends = log_probs[..., end].clone()
        if length < min_length:
            ends.fill_(-torch.inf)
        log_probs[..., end] = -torch.inf
        histories["log_probs"][:, :, length] = ends
        if length == max_length:
            finished.offer(rows, length, live + ends, histories, length_penalty)
            break
        if block_ngram:
            block_repeats(log_probs, histories["words"][:, :, :length], block_ngram)
        word_log_probs, words = top_k(log_probs, min(beam_size, log_probs.shape[2]))
        total, order = best((live[..., None] + word_log_probs).flatten(1), beam_size)
        parents = order // words.shape[2]
        words, word_log_probs = words.flatten(1).gather(1, order), word_log_probs.flatten(1).gather(1, order)

        ended = live + ends
        both = torch.cat([ended, total], dim=1)
        among_best = torch.zeros_like(both, dtype=torch.bool).scatter_(1, best(both, beam_size)[1], True)
        ended = torch.where(among_best[:, : ended.shape[1]], ended, -torch.inf)
        finished.offer(rows, length, ended, histories, length_penalty)

        promising = total / longest > finished.threshold(rows)[:, None]
        left = promising.any(1)
        width, count = torch.stack([promising.sum(1).max(), left.sum()]).tolist()  # All that a step asks the device.
        if width == 0:
            break
        kept = torch.arange(len(rows), device=device)
        if count <= _SHRINK_BELOW * len(rows):
            kept = kept_rows(left, count)
            memory = {name: tensor[kept] for name, tensor in memory.items()}
            rows = rows[kept]
        parents, tokens, live = parents[kept, :width], words[kept, :width], total[kept, :width]
        state = {name: tensor[kept[:, None], parents] for name, tensor in step.state.items()}
        histories = {name: tensor[kept[:, None], parents] for name, tensor in histories.items()}
        histories["words"][:, :, length] = tokens
        histories["log_probs"][:, :, length] = word_log_probs[kept, :width]

    check_log_probs(finished.score[:, 0])
    return finished.captions()


def best(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return up to k largest values of each row of a short matrix, in descending order, and their indices."""
    ordered, indices = values.sort(dim=1, descending=True, stable=True)
    return ordered[:, :k], indices[:, :k]


def top_k(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest along the last axis, in descending order; of equal ones the lower index comes first.

    ``torch.topk`` leaves the order of equal values open. If some are equal, it orders integers in the order of the
    values, of which none are equal, because they hold the index. A GPU is not asked whether some are: that would wait.

    Args:
        values: (..., V) float32 without NaN.
        k: at most V.

    Returns:
        values and indices (int64), both (..., k).
    """
    if not values.is_cuda:
        ordered, indices = values.topk(min(k + 1, values.shape[-1]))
        if not (ordered[..., 1:] == ordered[..., :-1]).any():
            return ordered[..., :k], indices[..., :k]
    bits = (values + 0.0).view(torch.int32)  # -0 becomes 0.
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = (ordered.long() << 32) + torch.arange(values.shape[-1] - 1, -1, -1, device=values.device)
    indices = keys.topk(k).indices
    return values.gather(-1, indices), indices


class _Finished:
    """The n best finished captions of every image: (B, n, ...) tensors in descending order of score."""

    def __init__(self, images: int, n_best: int, device: torch.device) -> None:
        self.score = torch.full((images, n_best), -torch.inf, device=device)
        self._kept: dict[str, Tensor] = {}
        self._attention: list[Tensor] = []

    def look(self, attention: Tensor) -> Tensor:
        """Keep what live hypotheses look at, (A, K, P): the number of each, (A, K), for its history."""
        first = sum(map(len, self._attention))
        self._attention.append(attention.flatten(0, 1).half())
        numbers = torch.arange(len(self._attention[-1]), device=attention.device)
        return (first + numbers).view(attention.shape[:2])

    def threshold(self, rows: Tensor) -> Tensor:
        """Return the score that a caption must exceed to enter the list."""
        return self.score[rows, -1]

    def offer(
        self, rows: Tensor, words: int, log_prob: Tensor, histories: dict[str, Tensor], length_penalty: float
    ) -> None:
        """End the live hypotheses of ``rows``, all of ``words`` words; those at minus infinity do not end."""
        scores = torch.cat([self.score[rows], log_prob / float(words + 1) ** length_penalty], dim=1)
        self.score[rows], order = best(scores, self.score.shape[1])
        place = torch.arange(len(rows), device=rows.device)[:, None]
        lengths = torch.full_like(log_prob, words, dtype=torch.int64)
        for name, tensor in {"log_prob": log_prob, "length": lengths, **histories}.items():
            if name not in self._kept:
                self._kept[name] = tensor.new_zeros(*self.score.shape, *tensor.shape[2:])
            self._kept[name][rows] = torch.cat([self._kept[name][rows], tensor], dim=1)[place, order]

    def captions(self) -> list[list[Hypothesis]]:
        with torch.autocast(self.score.device.type, enabled=False):  # It has no rule for the concatenation of float16.
            attention = torch.cat(self._attention)[self._kept["looks"]].cpu().numpy() if self._attention else None
        columns = [self.score, *(self._kept[name] for name in ("log_prob", "length", "words", "log_probs"))]
        captions: list[list[Hypothesis]] = []
        for image, of_image in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            captions.append([])
            for rank, (score, log_prob, length, words, log_probs) in enumerate(zip(*of_image, strict=True)):
                if score > -torch.inf:
                    weights = None if attention is None else attention[image, rank, :length].copy()
                    hypothesis = Hypothesis(words[:length], log_probs[: length + 1], log_prob, score, weights)
                    captions[image].append(hypothesis)
        return captions
