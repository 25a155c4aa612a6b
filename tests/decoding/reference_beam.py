"""Beam search as one would write it on a blackboard: one image, Python lists, no early stop."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from vitcapr.models.interface import Captioner, Memory, State


@dataclass
class Branch:
    state: State
    last: int
    words: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    looks: list[Tensor | None] = field(default_factory=list)
    total: float = 0.0
    score: float = 0.0


def reference_beam_search(model: Captioner, memory: Memory, n_best: int = 1, **options: Any) -> list[list[Branch]]:
    """The same contract as ``vitcapr.decoding.beam.beam_search``, image after image, each to the very end."""
    images = len(next(iter(memory.values())))
    alone = [{name: tensor[image : image + 1] for name, tensor in memory.items()} for image in range(images)]
    return [_search_one(model, one, **options)[:n_best] for one in alone]


def _search_one(
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
) -> list[Branch]:
    live = [Branch(model.initial_state(memory), start)]
    finished: list[Branch] = []
    for length in range(max_length + 1):
        grown = []
        for branch in live:
            step = model.step(memory, branch.state, torch.tensor([[branch.last]]))
            log_probs = torch.log_softmax(step.logits[0, 0].double(), dim=-1).tolist()
            look = None if step.attention is None else step.attention[0, 0]
            for token, log_prob in enumerate(log_probs):
                if token in {pad, start, *forbidden}:
                    continue
                if token == end and length < min_length:
                    continue
                if token != end and length == max_length:
                    continue
                if token != end and block_ngram and repeats([*branch.words, token], block_ngram):
                    continue
                grown.append(
                    Branch(
                        step.state,
                        token,
                        branch.words if token == end else [*branch.words, token],
                        [*branch.log_probs, log_prob],
                        branch.looks if token == end else [*branch.looks, look],
                        branch.total + log_prob,
                    )
                )
        # The sort is stable: of equals the branch that was ahead comes first, then the lower token.
        grown.sort(key=lambda branch: (-branch.total, branch.last != end))
        for branch in grown[:beam_size]:
            if branch.last == end:
                branch.score = branch.total / (length + 1) ** length_penalty
                finished.append(branch)
        live = [branch for branch in grown if branch.last != end][:beam_size]
    return sorted(finished, key=lambda branch: -branch.score)


def repeats(words: list[int], size: int) -> bool:
    """Whether the last n-gram of ``words`` occurs earlier in it."""
    grams = [tuple(words[first : first + size]) for first in range(len(words) - size + 1)]
    return bool(grams) and grams[-1] in grams[:-1]
